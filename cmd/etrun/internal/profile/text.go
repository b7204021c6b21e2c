package profile

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/etrun-go/etrun/internal/duration"
)

// WriteTable writes rows of the profile, those of [Profile.ByOperator] or p.Rows, with parts
// below their row. printable makes names safe for a terminal.
func (p *Profile) WriteTable(w io.Writer, rows []Row, printable func(string) string) error {
	fmt.Fprintf(w, "method %s, %s: median %s, max %s\n", printable(p.Method), p.runs(), duration.Format(p.Median), duration.Format(p.Max))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "median\tmax\tshare\tcalls\tat\t  name")
	for i := range rows {
		rows[i].write(t, "", printable)
		for k := range rows[i].Parts {
			rows[i].Parts[k].write(t, "  ", printable)
		}
	}
	return t.Flush()
}

func (p *Profile) runs() string {
	switch p.Runs {
	case 0:
		return "incomplete first run"
	case 1:
		return "1 run"
	}
	return fmt.Sprintf("%d runs", p.Runs)
}

func (r *Row) write(t io.Writer, indent string, printable func(string) string) {
	name := indent + printable(r.Name)
	for _, more := range []string{r.Result, r.Layer} {
		if more != "" {
			name += "  " + printable(more)
		}
	}
	fmt.Fprintf(t, "%s\t%s\t%.1f %%\t%d\t%s\t  %s\n", duration.Format(r.Median), duration.Format(r.Max), 100*r.Share, r.Calls,
		strings.TrimPrefix(r.Place(), "node "), name)
}
