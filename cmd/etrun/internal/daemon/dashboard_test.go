package daemon

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/etrun-go/etrun/internal/needs"
)

const deploy = "../../../../deploy"

// panel is a panel of the dashboard.
type panel struct {
	ID      int
	Title   string
	Type    string
	GridPos struct{ X, Y, W, H int }
	Targets []struct{ Expr string }
}

// dashboard returns the panels of the dashboard, and its queries of variables.
func dashboard(t *testing.T) (panels []panel, variables []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(deploy, "grafana.json"))
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Panels     []panel
		Templating struct{ List []struct{ Definition string } }
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	for _, v := range d.Templating.List {
		if v.Definition != "" {
			variables = append(variables, v.Definition)
		}
	}
	return d.Panels, variables
}

// alertRules are the rules of deploy/alerts.yaml, by name.
func alertRules(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(deploy, "alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	rules := make(map[string]string)
	for _, r := range file.Groups[0].Rules {
		rules[r.Alert] = r.Expr
	}
	return rules
}

// queries returns all queries, by where they are, with the variables of the dashboard replaced.
func queries(t *testing.T) map[string]string {
	t.Helper()
	all := alertRules(t)
	panels, _ := dashboard(t)
	for _, p := range panels {
		for i, target := range p.Targets {
			all[p.Title+" "+string(rune('A'+i))] = strings.NewReplacer("$__rate_interval", "5m", "$job", ".*", "$model", ".*").Replace(target.Expr)
		}
	}
	return all
}

var (
	metricName  = regexp.MustCompile(`\b(?:etrun|process|go)_[a-z0-9_]+`)
	metricLabel = regexp.MustCompile(`([a-z_]+)="`)
	matchers    = regexp.MustCompile(`\b([a-z0-9_]+)\{([^}]*)\}`)
	grouping    = regexp.MustCompile(`(?:by|on) \(([a-z, ]+)\)`)
)

// ofPrometheus are labels that Prometheus adds to what it scrapes.
var ofPrometheus = map[string]bool{"job": true, "instance": true}

// TestDashboards reads a real scrape: it has each metric, and each label of it, that the dashboard and the alert rules use.
func TestDashboards(t *testing.T) {
	if !canIsolate {
		t.Skip("no isolated models here, which have metrics of their own")
	}
	r := busy(t, nil)
	labels := make(map[string]map[string]bool)
	for _, line := range r.scrape() {
		name := metricName.FindString(line)
		if labels[name] == nil {
			labels[name] = make(map[string]bool)
		}
		for _, m := range metricLabel.FindAllStringSubmatch(line, -1) {
			labels[name][m[1]] = true
		}
	}
	list := queries(t)
	if len(list) < 30 {
		t.Errorf("%d queries", len(list))
	}
	_, variables := dashboard(t)
	for _, v := range variables {
		list[v] = v
	}
	for _, name := range []string{"kubernetes.yaml", "adapter.yaml"} {
		text, err := os.ReadFile(filepath.Join(deploy, name))
		if err != nil {
			t.Fatal(err)
		}
		list[name] = strings.Join(metricName.FindAllString(string(text), -1), " ")
	}
	for place, query := range list {
		names := metricName.FindAllString(query, -1)
		if len(names) == 0 && !strings.HasPrefix(query, "up{") {
			t.Errorf("%s: no metric in %s", place, query)
		}
		known := make(map[string]bool)
		for _, name := range names {
			if labels[name] == nil {
				t.Errorf("%s: no metric %s in a scrape", place, name)
			}
			for label := range labels[name] {
				known[label] = true
			}
		}
		for _, m := range matchers.FindAllStringSubmatch(query, -1) {
			for _, l := range regexp.MustCompile(`([a-z_]+)\s*=`).FindAllStringSubmatch(m[2], -1) {
				if !labels[m[1]][l[1]] && !ofPrometheus[l[1]] {
					t.Errorf("%s: %s has no label %s", place, m[1], l[1])
				}
			}
		}
		for _, m := range grouping.FindAllStringSubmatch(query, -1) {
			for label := range strings.SplitSeq(m[1], ", ") {
				if !known[label] && !ofPrometheus[label] {
					t.Errorf("%s: no label %s", place, label)
				}
			}
		}
	}
}

// TestDashboardPanels checks that panels have numbers of their own, and do not lie on each other.
func TestDashboardPanels(t *testing.T) {
	panels, _ := dashboard(t)
	seen, cells := make(map[int]bool), make(map[[2]int]string)
	for _, p := range panels {
		if seen[p.ID] || p.Title == "" || p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("panel %d %q: doubly, or without a title or queries", p.ID, p.Title)
		}
		seen[p.ID] = true
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if cells[at] != "" || at[0] >= 24 {
					t.Fatalf("%s lies on %s, or beyond the page", p.Title, cells[at])
				}
				cells[at] = p.Title
			}
		}
	}
}

// TestQueries has Prometheus parse all queries, and run the unit tests of the alert rules.
func TestQueries(t *testing.T) {
	promtool := needs.Tool(t, "promtool", "prometheus")
	type rule struct {
		Record string `yaml:"record"`
		Expr   string `yaml:"expr"`
	}
	var rules []rule
	for _, query := range queries(t) {
		rules = append(rules, rule{"etrun:query" + string(rune('a'+len(rules)%26)) + strings.Repeat("x", len(rules)/26), query})
	}
	text, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "queries", "rules": rules}}})
	if err != nil {
		t.Fatal(err)
	}
	alerts, err := filepath.Abs(filepath.Join(deploy, "alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	tests, err := os.ReadFile("testdata/alerts_test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"check", "rules", alerts},
		{"check", "rules", file(t, "queries.yaml", string(text))},
		{"test", "rules", file(t, "tests.yaml", strings.ReplaceAll(string(tests), "ALERTS", alerts))},
	} {
		if out, err := exec.CommandContext(t.Context(), promtool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
}
