package page

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/etrun-go/etrun/cmd/etrun/internal/chart"
	"github.com/etrun-go/etrun/cmd/etrun/internal/graph"
)

// View is a page of the graphs of one program, or of two side by side, with their memory plans.
type View struct {
	Version string
	Pages   []*Page
	Graph   Markup // of the same programs
}

const viewHead = documentHead + `<body class="view">
<header>
<h1>%[1]s</h1>
<nav>
<a href="#memory">memory</a>
<button id="theme" type="button">light or dark</button>
</nav>
</header>
%[3]s<main id="memory">
`

// Write writes the page.
func (v *View) Write(to io.Writer) error {
	w := writer{bufio.NewWriter(to)}
	var names []string
	for _, p := range v.Pages {
		names = append(names, p.Name)
	}
	w.put(viewHead, strings.Join(names, " and "), Markup(chart.Style+pageCSS+graph.Style), v.Graph)
	for i, p := range v.Pages {
		for k, m := range p.Methods {
			if len(m.Plans) == 0 {
				continue
			}
			w.put("<section>\n<h2>%s, method %s</h2>\n", p.Name, m.Name)
			w.memory(m, fmt.Sprintf("%d/%d", i, k))
			w.put("</section>\n")
		}
	}
	w.put("</main>\n<footer>made by %s</footer>\n<script>%s</script>\n</body>\n</html>\n", v.Version, Markup(chart.Script+pageJS+graph.Script()))
	return w.to.Flush()
}
