package grammar

import "strings"

// Regular expressions that formats share, by the names that these have for them.
var formatParts = strings.NewReplacer(
	"<date>", `(?:000[1-9]|00[1-9]\d|0[1-9]\d\d|[1-9]\d{3})-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])`,
	"<clock>", `(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d`,
	"<for>", `T(?:\d{1,6}H(?:\d{1,6}M(?:\d{1,6}S)?)?|\d{1,6}M(?:\d{1,6}S)?|\d{1,6}S)`,
	"<octet>", `(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]\d|\d)`,
	"<ipv4>", ipv4,
	"<ipv6>", `(?:(?:<h>:){7}<h>|(?:<h>:){1,7}:|(?:<h>:){1,6}:<h>|(?:<h>:){1,5}(?::<h>){1,2}|(?:<h>:){1,4}(?::<h>){1,3}|(?:<h>:){1,3}(?::<h>){1,4}|`+
		`(?:<h>:){1,2}(?::<h>){1,5}|<h>:(?::<h>){1,6}|:(?::<h>){1,7}|::)`,
	"<h>", "[0-9a-f]{1,4}",
	"<bits4>", `(?:3[0-2]|[12]\d|\d)`, "<bits6>", `(?:12[0-8]|1[01]\d|[1-9]?\d)`,
	"<H>", "[0-9A-Fa-f]",
	"<anyDate>", `(?:(?:\d\d(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29|`+
		`\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)|02-(?:0[1-9]|1\d|2[0-8])))`,
	"<anyTime>", `<clock>(?:\.\d+)?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)`,
	"<anyHost>", `[A-Za-z0-9]+(?:-+[A-Za-z0-9]+)*(?:\.[A-Za-z0-9]+(?:-+[A-Za-z0-9]+)*)*`,
	"<anyEmail>", `[A-Za-z0-9_+-]+(?:\.[A-Za-z0-9_+-]+)*@<anyHost>`,
	"<anyURI>", `[A-Za-z][A-Za-z0-9+.-]*:(?://<anyHost>(?::[1-9]\d{0,3})?(?:/<chars>*)?|/?[A-Za-z0-9._~-]<chars>*)`+
		`(?:\?(?:<chars>|\?)*)?(?:#(?:<chars>|\?)*)?`,
	"<word>", `[a-z0-9]{1,15}`, // the part before @ has at most 64 characters
	"<host>", `(?:[a-z0-9]+(?:-[a-z0-9]+)*\.)+[a-z]{2,9}`,
	"<chars>", `(?:[A-Za-z0-9._~!$&()*+,;=:@/-]|%[0-9A-F]{2})`,
	"<pointer>", `(?:/(?:[A-Za-z0-9 _.$-]|~[01])*)*`,
)

const (
	ipv4  = `(?:<octet>\.){3}<octet>`
	email = `<word>(?:\.<word>){0,3}@<word>(?:\.<word>){1,3}`
	uri   = `(?:(?:https?|wss?|ftp|s3|gs|git|ssh|postgres(?:ql)?|mysql|redis|mongodb|amqp)://(?:<host>|localhost)(?::[1-9]\d{1,3})?` +
		`(?:/<chars>*)?(?:\?(?:<chars>|\?)*)?(?:#(?:<chars>|\?)*)?|mailto:[a-z0-9]+(?:\.[a-z0-9]+)*@<host>|urn:[a-z][a-z0-9]+:[A-Za-z0-9._:-]+)`
	base64 = `(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?`
	quads  = `(?:[A-Za-z0-9_-]{4})`
	atoms  = `(?:[A-Za-z0-9 _,:;@#%&=!~<>"'/.-]|\\[dDwWsS.\\/()\[\]{}*+?|^$]|\[\^?(?:a-z|A-Z|0-9|[A-Za-z0-9_.,:@ ]|\\[dws])+\])(?:[*+?]|\{\d{1,2}\})?`
	uuid   = `[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`
	cidr4  = `<ipv4>/<bits4>`
	cidr6  = `<ipv6>/<bits6>`
	// pictures are emoji that need no selector.
	pictures = `[\u{1f300}-\u{1f320}\u{1f32d}-\u{1f335}\u{1f337}-\u{1f37c}\u{1f380}-\u{1f393}\u{1f3a0}-\u{1f3c4}\u{1f3e0}-\u{1f3f0}` +
		`\u{1f400}-\u{1f43e}\u{1f442}-\u{1f4fc}\u{1f5fb}-\u{1f64f}\u{1f680}-\u{1f6c5}\u{1f910}-\u{1f93a}\u{1f947}-\u{1f9af}]`
)

// formats are the formats of strings: not all strings of a format, but each of these is one. Others are annotations.
var formats = map[string]string{
	"date": "<date>", "time": "<clock>Z", "date-time": "<date>T<clock>Z", "iso-time": "<clock>Z", "iso-date-time": "<date>T<clock>Z",
	"duration": `P(?:(?:\d{1,6}D|\d{1,6}M(?:\d{1,6}D)?|\d{1,6}Y(?:\d{1,6}M(?:\d{1,6}D)?)?)(?:<for>)?|<for>|\d{1,6}W)`,
	"email":    email, "idn-email": email,
	"hostname": hostname, "idn-hostname": hostname,
	"ipv4": ipv4, "ipv6": "<ipv6>", "ipvanyaddress": ipv4,
	"cidr": cidr4, "cidrv4": cidr4, "ipv4-cidr": cidr4, "ipv4interface": cidr4, "ipvanyinterface": cidr4,
	"cidrv6": cidr6, "ipv6-cidr": cidr6, "ipv6interface": cidr6, "ipv6network": "<ipv6>/128",
	"ipv4network": ipv4Network, "ipvanynetwork": ipv4Network,
	"uri": uri, "url": uri, "iri": uri, "multi-host-uri": uri,
	"uri-reference": uriReference, "iri-reference": uriReference, "uri-template": `(?:/?(?:[A-Za-z0-9._~-]|\{[a-z][a-z0-9_]{0,30}\})+)+`,
	"uuid": uuid, "guid": uuid, "uuid1": uuidOf("1"), "uuid3": uuidOf("3"), "uuid4": uuidOf("4"), "uuid5": uuidOf("5"), "uuid6": uuidOf("6"),
	"uuid7": uuidOf("7"), "uuid8": uuidOf("8"),
	"byte": base64, "base64": base64, "base64url": quads + "*",
	"jwt":          `eyJhbGciOiJ(?:IUzI1|SUzI1|FUzI1)NiIsInR5cCI6IkpXVCJ9\.eyJ[A-Za-z0-9_-]` + quads + `*\.` + quads + "+",
	"json-pointer": "<pointer>", "relative-json-pointer": `(?:0|[1-9]\d{0,3})(?:#|<pointer>)`,
	"regex": `\^?(?:` + atoms + `|\((?:\?:)?(?:` + atoms + `)+(?:\|(?:` + atoms + `)+)*\)[*+?]?)+\$?`,
	"color": "#[0-9a-f]{6}", "e164": `\+[1-9]\d{6,14}`, "emoji": pictures + "{1,10}", "mac": "(?:[0-9a-f]{2}:){5}[0-9a-f]{2}",
	"ulid": "[0-7][0-9A-HJKMNP-TV-Z]{25}", "nanoid": "[A-Za-z0-9_-]{21}", "xid": "[0-9a-v]{20}", "ksuid": "[A-Za-z0-9]{27}",
	"cuid": "c[0-9a-z]{24}", "cuid2": "[a-z][0-9a-z]{23}",
}

// wider are more strings of formats, for those beside patterns that exclude the ones above.
var wider = map[string]string{
	"date": "<anyDate>", "time": "<anyTime>", "date-time": "<anyDate>T<anyTime>",
	"email": "<anyEmail>", "idn-email": "<anyEmail>",
	"hostname": "<anyHost>", "idn-hostname": "<anyHost>",
	"uuid": "<H>{8}-<H>{4}-<H>{4}-<H>{4}-<H>{12}", "mac": "(?:<H>{2}[:-]){5}<H>{2}",
	"uri": "<anyURI>", "url": "<anyURI>", "iri": "<anyURI>", "multi-host-uri": "<anyURI>",
}

// complete are the formats all of whose strings are known.
var complete = []string{"date", "uuid", "ipv4"}

const (
	hostname     = `(?=.{1,63}$)(?:[a-z0-9]+(?:-[a-z0-9]+)*\.)*[a-z]{2,9}`
	ipv4Network  = `(?:(?:<octet>\.){3}0/24|(?:<octet>\.){2}0\.0/16|<octet>\.0\.0\.0/8|<ipv4>/32)`
	uriReference = `(?:` + uri + `|/?[A-Za-z0-9._~-]+(?:/[A-Za-z0-9._~-]+)*/?(?:\?(?:<chars>|\?)*)?(?:#(?:<chars>|\?)*)?)`
)

func uuidOf(version string) string {
	return `[0-9a-f]{8}-[0-9a-f]{4}-` + version + `[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`
}

// encodings are those of contentEncoding.
var encodings = map[string]string{"base64": base64, "base64url": quads + "*", "base16": "(?:[0-9A-F]{2})*",
	"base32": "(?:[A-Z2-7]{8})*"}

// formatPattern returns the regular expression of a format.
func formatPattern(s string) string {
	for strings.Contains(s, "<") {
		t := formatParts.Replace(s)
		if t == s {
			break
		}
		s = t
	}
	return s
}

// ranges of numbers of formats.
var numberFormats = map[string][2]string{
	"int8": {"-128", "127"}, "uint8": {"0", "255"}, "int16": {"-32768", "32767"}, "uint16": {"0", "65535"},
	"int32": {"-2147483648", "2147483647"}, "uint32": {"0", "4294967295"}, "uint64": {"0", "18446744073709551615"},
}
