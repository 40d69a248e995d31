package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/realizar/realizar/e2e/dashboard"
	"github.com/realizar/realizar/internal/longtest"
)

const (
	dashboardFile = "../deploy/grafana/realizar.json"
	alertsFile    = "../deploy/prometheus/alerts.yaml"
)

// scrapeInterval is that of the tests' Prometheus.
const scrapeInterval = time.Second

// prometheus starts a Prometheus that scrapes the servers and evaluates the alerts. It skips the test
// if there is none; where long tests are wanted, as in CI, the test fails then.
func prometheus(t *testing.T, servers ...*server) dashboard.Prometheus {
	t.Helper()
	program, err := exec.LookPath("prometheus")
	if err != nil {
		if longtest.Wanted() {
			t.Fatal(err)
		}
		t.Skip("there is no prometheus")
	}
	rules, err := filepath.Abs(alertsFile)
	if err != nil {
		t.Fatal(err)
	}
	var targets []string
	for _, s := range servers {
		targets = append(targets, strings.TrimPrefix(s.url, "http://"))
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yaml")
	text, err := json.Marshal(map[string]any{ // which is YAML too
		"global":         map[string]any{"scrape_interval": scrapeInterval.String(), "evaluation_interval": scrapeInterval.String()},
		"rule_files":     []string{rules},
		"scrape_configs": []any{map[string]any{"job_name": "realizar", "static_configs": []any{map[string]any{"targets": targets}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config, text, 0o600); err != nil {
		t.Fatal(err)
	}
	said := &lockedBuffer{}
	cmd := exec.Command(program, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address=127.0.0.1:0")
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	listens := regexp.MustCompile(`msg="Listening on" address=(\S+)`)
	var p dashboard.Prometheus
	until(t, func() string {
		select {
		case <-ended:
			t.Fatalf("Prometheus ends; its log:\n%s", said)
		default:
		}
		at := listens.FindStringSubmatch(said.String())
		if at == nil {
			return "Prometheus has no address; its log:\n" + said.String()
		}
		p = dashboard.Prometheus("http://" + at[1])
		return ""
	})
	return p
}

// until repeats a check until it has no complaint.
func until(t *testing.T, check func() (complaint string)) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	late := time.After(time.Minute)
	for {
		complaint := check()
		if complaint == "" {
			return
		}
		select {
		case <-tick.C:
		case <-late:
			t.Fatal("after a minute: " + complaint)
		}
	}
}

// load keeps requests running until the test ends.
func load(t *testing.T, requests ...func()) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for _, request := range requests {
		all.Go(func() {
			for ctx.Err() == nil {
				request()
			}
		})
	}
	t.Cleanup(func() { stop(); all.Wait() })
}

// Every query of the dashboard has numbers where servers have load, no two series of a panel have the
// same name, and shares are from 0 to 1. All alerts can be evaluated, and none fires.
func TestDashboardAndAlerts(t *testing.T) {
	d, err := dashboard.Read(dashboardFile)
	if err != nil {
		t.Fatal(err)
	}
	one, two := startOpen(t, demo, model), startOpen(t, demo)
	p := prometheus(t, one, two)
	ask := func(s *server, model string) func() {
		body := fmt.Sprintf(`{"model": %q, "prompt": %q, "max_tokens": 20}`, model, strings.Repeat("How do I change the port? ", 20))
		return func() {
			if status := s.post("/v1/completions", body); status != http.StatusOK {
				t.Errorf("a request to %s gets %d", model, status)
			}
		}
	}
	load(t, ask(one, demo), ask(one, "babble"), ask(two, demo))

	ctx, began := t.Context(), time.Now()
	rates := 4 * scrapeInterval
	var values dashboard.Values
	until(t, func() string {
		if values, err = d.Values(ctx, p, rates); err != nil {
			return err.Error()
		}
		for _, want := range []string{"demo", "babble"} {
			if !strings.Contains(values["model"], want) {
				return fmt.Sprintf("the models are %s, without %s", values["model"], want)
			}
		}
		if strings.Count(values["instance"], "|") != 1 {
			return "the servers are " + values["instance"]
		}
		return ""
	})
	for _, panel := range d.Charts() {
		t.Run(panel.Title, func(t *testing.T) {
			if len(panel.Targets) == 0 {
				t.Error("it has no query")
			}
			until(t, func() string { return faults(ctx, p, panel, values) })
		})
	}
	t.Run("picture", func(t *testing.T) {
		until(t, func() string {
			page, _, err := d.Draw(ctx, p, dashboard.Window{Start: began, End: time.Now(), Scrape: scrapeInterval})
			if err != nil {
				return err.Error()
			}
			if n := strings.Count(string(page), "<svg"); n != len(d.Charts()) {
				return fmt.Sprintf("%d panels are drawn of %d", n, len(d.Charts()))
			}
			return ""
		})
	})
	t.Run("alerts", func(t *testing.T) { until(t, func() string { return alertFaults(t, p) }) })
}

// faults returns what is wrong with what a panel shows.
func faults(ctx context.Context, p dashboard.Prometheus, panel dashboard.Panel, values dashboard.Values) string {
	names := map[string]bool{}
	for _, target := range panel.Targets {
		query, err := values.Expand(target.Expr)
		if err != nil {
			return err.Error()
		}
		found, err := p.Query(ctx, query)
		if err != nil {
			return fmt.Sprintf("%s: %v", query, err)
		}
		if len(found) == 0 {
			return query + " finds nothing"
		}
		for _, s := range found {
			v, name := s.Points[0].Value, target.Legend(s)
			switch {
			case math.IsNaN(v) || math.IsInf(v, 0) || v < 0:
				return fmt.Sprintf("%s is %g", query, v)
			case panel.FieldConfig.Defaults.Unit == "percentunit" && v > 1.1: // rates are extrapolated
				return fmt.Sprintf("%s is %g, more than 100%%", query, v)
			case name == "" || names[name]:
				return fmt.Sprintf("two series of a panel, or one without a name, are called %q", name)
			}
			names[name] = true
		}
	}
	return ""
}

// alertFaults returns what is wrong with the alerts, and ends the test if that is an error.
func alertFaults(t *testing.T, p dashboard.Prometheus) string {
	t.Helper()
	var found struct {
		Groups []struct {
			Rules []struct {
				Name, State, Health, LastError string
			}
		}
	}
	if err := p.Get(t.Context(), "/api/v1/rules", nil, &found); err != nil {
		return err.Error()
	}
	if len(found.Groups) != 1 || len(found.Groups[0].Rules) == 0 {
		t.Fatalf("no alerts were loaded: %+v", found)
	}
	for _, rule := range found.Groups[0].Rules {
		switch {
		case rule.Health == "err" || rule.State == "firing":
			t.Fatalf("%s is %s: %s", rule.Name, rule.State, rule.LastError)
		case rule.Health != "ok":
			return rule.Name + " has not been evaluated"
		}
	}
	return ""
}
