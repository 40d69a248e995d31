package deploy_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/realizar/realizar/internal/longtest"
)

// alerts are the rules of prometheus/alerts.yaml.
func alerts(t *testing.T) []struct{ Alert, Expr string } {
	t.Helper()
	var file struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	text, err := os.ReadFile("prometheus/alerts.yaml")
	if err == nil {
		err = yaml.Unmarshal(text, &file)
	}
	if err != nil || len(file.Groups) != 1 || len(file.Groups[0].Rules) == 0 {
		t.Fatal("prometheus/alerts.yaml has no group of alerts", err)
	}
	return file.Groups[0].Rules
}

// Every alert fires on a fault, does not fire before the fault has lasted, and does not fire under
// load without a fault: prometheus/alerts_test.yaml has the series, and promtool evaluates the rules.
func TestAlerts(t *testing.T) {
	var cases struct {
		Tests []struct {
			Name           string
			AlertRuleTests []struct {
				Alertname string
				Expected  []any `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		}
	}
	text, err := os.ReadFile("prometheus/alerts_test.yaml")
	if err == nil {
		err = yaml.Unmarshal(text, &cases)
	}
	if err != nil || len(cases.Tests) == 0 {
		t.Fatal("there are no tests", err)
	}
	fires, healthy, before := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for i, one := range cases.Tests {
		for _, a := range one.AlertRuleTests {
			switch {
			case len(a.Expected) > 0:
				fires[a.Alertname] = true
			case i == 0:
				healthy[a.Alertname] = true
			default:
				before[a.Alertname] = true
			}
		}
	}
	for _, rule := range alerts(t) {
		if !fires[rule.Alert] || !healthy[rule.Alert] || !before[rule.Alert] {
			t.Errorf("%s is not tested in each way: with a fault %t, before that %t, without one %t", rule.Alert, fires[rule.Alert], before[rule.Alert], healthy[rule.Alert])
		}
	}
	promtool(t, "check", "rules", "prometheus/alerts.yaml")
	promtool(t, "test", "rules", "prometheus/alerts_test.yaml")
}

// promtool runs promtool, or skips the test where long tests are not wanted and promtool is missing.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	if _, err := exec.LookPath("promtool"); err != nil && !longtest.Wanted() {
		t.Skip("promtool is not installed: it comes with Prometheus")
	}
	if out, err := exec.CommandContext(t.Context(), "promtool", args...).CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}
