package deploy_test

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/demo"
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/dialects"
	"github.com/realizar/realizar/internal/server/servertest"
)

// exported returns the metrics of a server that has answered a request, and those of HTTP requests
// by their labels.
func exported(t *testing.T) map[string]bool {
	t.Helper()
	m := servertest.Open(t, demo.Name, realizar.Options{Device: "cpu"})
	s, _ := servertest.Serve(t, servertest.One(t, m, demo.Name), server.Config{Dialects: dialects.All, Parallel: m.Parallel()})
	r, err := http.Post(s.URL+"/v1/completions", "application/json", strings.NewReader(`{"prompt": "a", "max_tokens": 1}`))
	if err != nil || r.StatusCode != http.StatusOK {
		t.Fatal(err, r)
	}
	_ = r.Body.Close()
	if r, err = http.Get(s.URL + "/metrics"); err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, sample := range regexp.MustCompile(`(?m)^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{([^}]*)\})? `).FindAllStringSubmatch(string(text), -1) {
		names[sample[1]] = true
		for _, label := range regexp.MustCompile(`(\w+)="`).FindAllStringSubmatch(sample[2], -1) {
			names[sample[1]+" "+label[1]] = true
		}
	}
	return names
}

// selector matches a metric in a query and the labels that it selects.
var selector = regexp.MustCompile(`\b((?:vllm:|realizar_|process_|go_)[a-z0-9_:]+|up\b)(?:\{([^}]*)\})?`)

// check checks that the metrics of a query and the labels that it selects are exported. Prometheus
// itself adds the metric up and the labels instance, job, namespace and pod.
func check(t *testing.T, names map[string]bool, where, query string) {
	t.Helper()
	found := selector.FindAllStringSubmatch(query, -1)
	if len(found) == 0 {
		t.Errorf("%s names no metric: %s", where, query)
	}
	if strings.Count(query, "(") != strings.Count(query, ")") || strings.Count(query, "{") != strings.Count(query, "}") {
		t.Errorf("%s has a bracket that is not closed: %s", where, query)
	}
	for _, s := range found {
		if !names[s[1]] && s[1] != "up" {
			t.Errorf("%s: %s is not exported", where, s[1])
		}
		for _, label := range regexp.MustCompile(`(\w+)=~?"`).FindAllStringSubmatch(s[2], -1) {
			if !names[s[1]+" "+label[1]] && !slices.Contains([]string{"instance", "job", "namespace", "pod"}, label[1]) {
				t.Errorf("%s: %s has no label %s", where, s[1], label[1])
			}
		}
	}
}

// Every metric that the dashboard, the alerts and the chart name is exported, with the labels by
// which it is selected.
func TestMetricsAreExported(t *testing.T) {
	names := exported(t)
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
		Templating struct {
			List []struct {
				Name  string
				Query any
			}
		}
	}
	text, err := os.ReadFile("grafana/realizar.json")
	if err == nil {
		err = json.Unmarshal(text, &dashboard)
	}
	if err != nil || len(dashboard.Panels) == 0 {
		t.Fatal("the dashboard has no panels", err)
	}
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			check(t, names, "the dashboard's panel "+p.Title, target.Expr)
		}
	}
	for _, v := range dashboard.Templating.List {
		if query, ok := v.Query.(map[string]any); ok {
			check(t, names, "the dashboard's variable "+v.Name, query["query"].(string))
		}
	}
	page, err := os.ReadFile("../docs/production.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range alerts(t) {
		check(t, names, "the alert "+rule.Alert, rule.Expr)
		if !strings.Contains(string(page), "`"+rule.Alert+"`") {
			t.Errorf("docs/production.md does not say what to do about %s", rule.Alert)
		}
	}
	golden, err := os.ReadFile("testdata/full.golden.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, query := range regexp.MustCompile(`query: "(.*)"\n`).FindAllStringSubmatch(string(golden), -1) {
		check(t, names, "the chart", strings.ReplaceAll(query[1], `\"`, `"`))
	}
}
