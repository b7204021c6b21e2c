package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// rule is the form of a value: its YAML type and text.
type rule struct {
	tag  string
	form *regexp.Regexp
}

func textForm(form string) rule { return rule{"!!str", regexp.MustCompile(`^(?:` + form + `)$`)} }

var (
	anyText  = textForm(`(?s).+`)
	label    = textForm(`[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?`)
	quantity = textForm(`[0-9]+(\.[0-9]+)?(m|k|Ki|M|Mi|G|Gi|T|Ti)?`)
	protocol = textForm(`v1|v2|grpc-v1|grpc-v2`)
	boolean  = rule{"!!bool", regexp.MustCompile(`^(true|false)$`)}
	count    = rule{"!!int", regexp.MustCompile(`^[1-9][0-9]{0,5}$`)}
	port     = rule{"!!int", regexp.MustCompile(`^([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])$`)}
)

// containers returns the fields of the type Container (core/v1) below a path, with others.
func containers(path string, others map[string]rule) map[string]rule {
	for field, r := range map[string]rule{
		"name!": label, "image": anyText, "args[]": anyText, "command[]": anyText,
		"ports[].containerPort!": port, "ports[].protocol": textForm(`TCP|UDP|SCTP`),
		"readinessProbe.httpGet.path": textForm(`/.*`), "readinessProbe.httpGet.port!": port,
		"livenessProbe.httpGet.path": textForm(`/.*`), "livenessProbe.httpGet.port!": port,
		"resources.requests.cpu": quantity, "resources.requests.memory": quantity,
		"resources.limits.cpu": quantity, "resources.limits.memory": quantity,
		"securityContext.allowPrivilegeEscalation": boolean, "securityContext.readOnlyRootFilesystem": boolean,
		"securityContext.runAsNonRoot": boolean, "securityContext.capabilities.drop[]": textForm(`[A-Z_]+`),
		"securityContext.seccompProfile.type!": textForm(`RuntimeDefault|Localhost|Unconfined`),
		"volumeMounts[].name!":                 label, "volumeMounts[].mountPath!": textForm(`/.*`), "volumeMounts[].readOnly": boolean,
	} {
		others[path+"."+field] = r
	}
	return others
}

// manifests are the fields that the files in deploy may use, of the types published as ServingRuntime
// (serving.kserve.io/v1alpha1), InferenceService (v1beta1), Deployment (apps/v1), Service (core/v1) and HorizontalPodAutoscaler
// (autoscaling/v2). A list is marked by [] and a required field by !; a dot in a name follows a backslash.
var manifests = map[string]map[string]rule{
	"ServingRuntime": containers("spec!.containers![]", map[string]rule{
		"apiVersion!": textForm(`serving\.kserve\.io/v1alpha1`), "kind!": textForm(`ServingRuntime`), "metadata!.name!": label,
		"spec!.supportedModelFormats[].name!": anyText, "spec!.supportedModelFormats[].version": textForm(`[0-9]+(\.[0-9]+){0,2}`),
		"spec!.supportedModelFormats[].autoSelect": boolean, "spec!.protocolVersions[]": protocol, "spec!.multiModel": boolean,
		`spec!.annotations.prometheus\.kserve\.io/path`: textForm(`/.*`),
		`spec!.annotations.prometheus\.kserve\.io/port`: textForm(`[1-9][0-9]*`),
		"spec!.disabled": boolean,
	}),
	"InferenceService": {
		"apiVersion!": textForm(`serving\.kserve\.io/v1beta1`), "kind!": textForm(`InferenceService`), "metadata!.name!": label,
		"spec!.predictor!.model.modelFormat!.name!": anyText, "spec!.predictor!.model.modelFormat!.version": anyText,
		"spec!.predictor!.model.protocolVersion": protocol, "spec!.predictor!.model.runtime": label,
		"spec!.predictor!.model.storageUri": textForm(`[a-z0-9]+://.+`),
	},
	"Deployment": containers("spec!.template!.spec!.containers![]", map[string]rule{
		"apiVersion!": textForm(`apps/v1`), "kind!": textForm(`Deployment`), "metadata!.name!": label,
		"spec!.replicas": count, "spec!.selector!.matchLabels.app": label, "spec!.template!.metadata.labels.app": label,
		`spec!.template!.metadata.annotations.prometheus\.io/scrape`:       textForm(`true|false`),
		`spec!.template!.metadata.annotations.prometheus\.io/path`:         textForm(`/.*`),
		`spec!.template!.metadata.annotations.prometheus\.io/port`:         textForm(`[1-9][0-9]*`),
		"spec!.template!.spec!.terminationGracePeriodSeconds":              count,
		"spec!.template!.spec!.volumes[].name!":                            label,
		"spec!.template!.spec!.volumes[].persistentVolumeClaim.claimName!": label,
		"spec!.template!.spec!.volumes[].persistentVolumeClaim.readOnly":   boolean,
	}),
	"Service": {
		"apiVersion!": textForm(`v1`), "kind!": textForm(`Service`), "metadata!.name!": label, "spec!.selector.app": label,
		"spec!.ports[].port!": port, "spec!.ports[].targetPort": port, "spec!.ports[].protocol": textForm(`TCP|UDP|SCTP`),
	},
	"HorizontalPodAutoscaler": {
		"apiVersion!": textForm(`autoscaling/v2`), "kind!": textForm(`HorizontalPodAutoscaler`), "metadata!.name!": label,
		"spec!.scaleTargetRef!.apiVersion": textForm(`apps/v1`), "spec!.scaleTargetRef!.kind!": textForm(`Deployment`),
		"spec!.scaleTargetRef!.name!": label, "spec!.minReplicas": count, "spec!.maxReplicas!": count,
		"spec!.metrics[].type!": textForm(`Pods`), "spec!.metrics[].pods.metric!.name!": textForm(`[a-z_]+`),
		"spec!.metrics[].pods.target!.type!": textForm(`AverageValue`), "spec!.metrics[].pods.target!.averageValue": quantity,
		"spec!.behavior.scaleDown.stabilizationWindowSeconds": count,
	},
}

// deployed are the kinds of the documents of a file, in order.
var deployed = map[string][]string{
	"kserve.yaml":     {"ServingRuntime", "InferenceService"},
	"kubernetes.yaml": {"Deployment", "Service", "HorizontalPodAutoscaler"},
}

// checkManifests checks the documents of a YAML stream against manifests.
func checkManifests(stream string) (kinds []string, err error) {
	for d := yaml.NewDecoder(strings.NewReader(stream)); ; {
		var document yaml.Node
		if err := d.Decode(&document); err == io.EOF {
			return kinds, nil
		} else if err != nil {
			return kinds, err
		}
		var named struct{ Kind string }
		if err := document.Decode(&named); err != nil || manifests[named.Kind] == nil {
			return kinds, fmt.Errorf("kind %q, %v", named.Kind, err)
		}
		kinds = append(kinds, named.Kind)
		if err := checkNode(document.Content[0], newSchema(manifests[named.Kind]), named.Kind); err != nil {
			return kinds, err
		}
	}
}

// schema is the form of a node: of an object if it has fields, of a list if it has an element, else
// of a scalar.
type schema struct {
	fields   map[string]*schema
	required []string
	element  *schema
	scalar   *rule
}

func newSchema(paths map[string]rule) *schema {
	root := &schema{}
	for path, r := range paths {
		at := root
		for name := range strings.SplitSeq(strings.ReplaceAll(path, `\.`, "\x00"), ".") {
			at = at.child(strings.ReplaceAll(name, "\x00", "."))
		}
		at.scalar = &r
	}
	return root
}

// child returns the schema of a field, adding it.
func (s *schema) child(name string) *schema {
	name, list := strings.CutSuffix(name, "[]")
	name, required := strings.CutSuffix(name, "!")
	if s.fields == nil {
		s.fields = make(map[string]*schema)
	}
	if s.fields[name] == nil {
		s.fields[name] = &schema{}
		if required {
			s.required = append(s.required, name)
		}
	}
	s = s.fields[name]
	if list && s.element == nil {
		s.element = &schema{}
	}
	if list {
		return s.element
	}
	return s
}

func checkNode(n *yaml.Node, s *schema, place string) error {
	fault := func(want string) error {
		return fmt.Errorf("line %d: %s: %s %q, want %s", n.Line, place, n.Tag, n.Value, want)
	}
	switch {
	case s.element != nil && n.Kind != yaml.SequenceNode:
		return fault("a list")
	case s.element != nil:
		for i, c := range n.Content {
			if err := checkNode(c, s.element, fmt.Sprintf("%s[%d]", place, i)); err != nil {
				return err
			}
		}
		return nil
	case s.scalar != nil && (n.Kind != yaml.ScalarNode || n.Tag != s.scalar.tag || !s.scalar.form.MatchString(n.Value)):
		return fault(s.scalar.tag + " " + s.scalar.form.String())
	case s.scalar != nil:
		return nil
	case n.Kind != yaml.MappingNode:
		return fault("an object")
	}
	return checkFields(n, s, place)
}

func checkFields(n *yaml.Node, s *schema, place string) error {
	missing := slices.Clone(s.required)
	for i := 0; i < len(n.Content); i += 2 {
		name := n.Content[i].Value
		if s.fields[name] == nil {
			return fmt.Errorf("line %d: %s has no field %q", n.Content[i].Line, place, name)
		}
		if err := checkNode(n.Content[i+1], s.fields[name], place+"."+name); err != nil {
			return err
		}
		missing = slices.DeleteFunc(missing, func(m string) bool { return m == name })
	}
	if len(missing) > 0 {
		return fmt.Errorf("line %d: %s has no %s", n.Line, place, missing[0])
	}
	return nil
}

// Forms of values in units: systemd.syntax(7), systemd.time(7), systemd.exec(5).
const (
	unitBool = `yes|no`
	unitTime = `[0-9]+(ms|s|min|h)?`
	unitPath = `/[^ ]+`
	unitName = `[a-z][a-z0-9-]*`
	unitMode = `0[0-7]{3}`
)

// directives are the settings that the units may use, by section, with the form of their values.
var directives = map[string]map[string]string{
	"Unit": {"Description": `.+`, "Documentation": `https?://.+`, "After": `[a-z-]+\.(target|socket|service)`},
	"Service": {"Type": `simple|exec|notify`, "ExecStart": unitPath + `( .+)?`, "ExecReload": unitPath + `( .+)?`, "WatchdogSec": unitTime,
		"TimeoutStartSec": unitTime, "TimeoutStopSec": unitTime, "Restart": `no|always|on-failure|on-abnormal`, "RestartSec": unitTime,
		"DynamicUser": unitBool, "RuntimeDirectory": unitName, "RuntimeDirectoryMode": unitMode, "ConfigurationDirectory": unitName,
		"UMask": unitMode, "CapabilityBoundingSet": `(CAP_[A-Z_]+ ?)*`, "AmbientCapabilities": `(CAP_[A-Z_]+ ?)*`,
		"NoNewPrivileges": unitBool, "LockPersonality": unitBool, "MemoryDenyWriteExecute": unitBool, "PrivateDevices": unitBool,
		"PrivateTmp": unitBool, "PrivateUsers": unitBool, "ProcSubset": `all|pid`, "ProtectClock": unitBool, "ProtectControlGroups": unitBool,
		"ProtectHome": unitBool + `|read-only|tmpfs`, "ProtectHostname": unitBool, "ProtectKernelLogs": unitBool,
		"ProtectKernelModules": unitBool, "ProtectKernelTunables": unitBool, "ProtectProc": `default|noaccess|invisible|ptraceable`,
		"ProtectSystem": unitBool + `|full|strict`, "RemoveIPC": unitBool, "RestrictAddressFamilies": `~?(AF_[A-Z0-9]+ ?)+|none`,
		"RestrictNamespaces": unitBool, "RestrictRealtime": unitBool, "RestrictSUIDSGID": unitBool, "SystemCallArchitectures": `native`,
		"SystemCallFilter": `~?(@?[a-z][a-z0-9_-]* ?)+`, "SystemCallErrorNumber": `E[A-Z]+`},
	"Socket":  {"ListenStream": unitPath, "SocketMode": unitMode},
	"Install": {"WantedBy": `[a-z-]+\.target`},
}

// required are the settings without which a unit does not do what docs/serve.md says.
var required = map[string][]string{
	"etrun.service": {"Service.Type", "Service.ExecStart", "Service.WatchdogSec", "Service.Restart", "Install.WantedBy"},
	"etrun.socket":  {"Socket.ListenStream", "Install.WantedBy"},
}

func checkUnit(name, unit string) error {
	section, seen := "", make(map[string]bool)
	for line := range strings.Lines(unit) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if inside, ok := strings.CutPrefix(line, "["); ok {
			if section = strings.TrimSuffix(inside, "]"); directives[section] == nil {
				return fmt.Errorf("section %q", line)
			}
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		form, known := directives[section][key]
		if !ok || !known || !regexp.MustCompile(`^(?:`+form+`)$`).MatchString(value) {
			return fmt.Errorf("[%s] %s, want the form %q", section, line, form)
		}
		seen[section+"."+key] = true
	}
	for _, key := range required[name] {
		if !seen[key] {
			return fmt.Errorf("no %s", key)
		}
	}
	return nil
}

// instructions are those of the Containerfile with the form of their arguments; a list is JSON.
var instructions = map[string]string{
	"FROM": `[a-z0-9./-]+:[a-z0-9.-]+`, "COPY": `[^/ ][^ ]* /[^ ]+`, "ENTRYPOINT": `\[.*\]`, "CMD": `\[.*\]`,
}

func checkContainerfile(file string) error {
	seen := make(map[string]int)
	for line := range strings.Lines(file) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		name, arguments, _ := strings.Cut(line, " ")
		form := instructions[name]
		if form == "" || !regexp.MustCompile(`^(?:`+form+`)$`).MatchString(arguments) {
			return fmt.Errorf("%s, want the form %q", line, form)
		}
		var list []string
		if form[0] == '\\' && (json.Unmarshal([]byte(arguments), &list) != nil || len(list) == 0) {
			return fmt.Errorf("%s, want a list of strings", line)
		}
		if seen[name]++; seen["FROM"] == 0 {
			return errors.New("an instruction before FROM")
		}
	}
	if seen["FROM"] != 1 || seen["ENTRYPOINT"] != 1 || seen["CMD"] != 1 {
		return fmt.Errorf("instructions %v", seen)
	}
	return nil
}

// checkDeploy checks a file of deploy by its name.
func checkDeploy(name, file string) error {
	switch name {
	case "kserve.yaml", "kubernetes.yaml":
		kinds, err := checkManifests(file)
		if err == nil && !slices.Equal(kinds, deployed[name]) {
			err = fmt.Errorf("kinds %q", kinds)
		}
		return err
	case "Containerfile":
		return checkContainerfile(file)
	}
	return checkUnit(name, file)
}

// TestDeploySchemas checks the deployment files against the published schemas, and that an unknown
// field, a wrong type or a missing field is found.
func TestDeploySchemas(t *testing.T) {
	for name, changes := range map[string][][2]string{
		"kserve.yaml": {
			{"v1alpha1", "v1"}, {"kind: ServingRuntime", "kind: Runtime"}, {"supportedModelFormats", "modelFormats"},
			{"autoSelect: true", "autoselect: true"},
			{"autoSelect: true", `autoSelect: "yes"`}, {`version: "1"`, "version: 1"}, {"- v2", "- 2"}, {"- v2", "- v3"},
			{"multiModel: false", "multiModel: 0"},
			{"    - name: kserve-container\n      image", "    - image"}, {"containers:", "container:"}, {"--insecure\n", "5\n"},
			{"containerPort: 8080", "containerPort: 80800"},
			{"containerPort: 8080", `containerPort: "8080"`}, {"protocol: TCP", "protocol: tcp"}, {"httpGet", "httpget"},
			{"path: /v2", "path: v2"},
			{"memory: 256Mi", "memory: 256MB"}, {`cpu: "1"`, `cpus: "1"`}, {"runAsNonRoot: true", "runAsNonRoot: 1000"},
			{`["ALL"]`, "ALL"},
			{"type: RuntimeDefault", "type: Default"}, {"modelFormat:\n        name", "modelFormat:\n        nam"},
			{"protocolVersion: v2", "protocolVersions: v2"},
			{"storageUri", "storageURI"}, {"pvc://", ""}, {"predictor:", "predict:"},
			{"      runtime: etrun\n", "      runtime: [etrun]\n"}, {"\n---\n", "\n"},
		},
		"kubernetes.yaml": {
			{"apps/v1", "apps/v2"}, {"matchLabels", "labels"}, {"containers:", "container:"}, {"mountPath: /mnt", "mountPath: mnt"},
			{"claimName: models", "name: models"}, {"targetPort: 8080", "targetPort: 99999"}, {"autoscaling/v2", "autoscaling/v1"},
			{"maxReplicas: 8", "maxReplicas: 0"}, {"  maxReplicas: 8\n", ""}, {"type: Pods", "type: Pod"}, {`averageValue: "4"`, "averageValue: 4"},
			{"scaleTargetRef", "targetRef"}, {"\n---\n", "\n"},
		},
		"etrun.service": {{"[Service]", "[Services]"}, {"WatchdogSec", "Watchdog"}, {"RestartSec=1s", "RestartSec=soon"},
			{"Type=notify", "Type=notify-reload"},
			{"PrivateTmp=yes", "PrivateTmp=1k"}, {"ExecStart=/", "ExecStart="}, {"UMask=0077", "UMask=77"}, {"AF_UNIX", "UNIX"},
			{"Restart=on-failure\n", ""}},
		"etrun.socket": {{"ListenStream=", "Listen="}, {"SocketMode=0660", "SocketMode=rw"}, {"[Install]\nWantedBy=sockets.target", ""}},
		"Containerfile": {{"FROM", "BASE"}, {`["/usr/bin/etrun", "serve"]`, "/usr/bin/etrun serve"}, {`"serve"]`, `serve]`},
			{"COPY bin/etrun /usr", "COPY /usr"}, {"CMD", "ARGS"}},
	} {
		good := readText(t, "deploy", name)
		if err := checkDeploy(name, good); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, c := range changes {
			if bad := strings.Replace(good, c[0], c[1], 1); bad == good || checkDeploy(name, bad) == nil {
				t.Errorf("%s: %q in place of %q is not found", name, c[1], c[0])
			}
		}
	}
}
