// Package dashboard evaluates and draws a dashboard of Grafana from what a Prometheus has, without
// Grafana.
package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
)

// A Dashboard has the parts of Grafana's model that this package uses.
type Dashboard struct {
	Title      string
	Panels     []Panel
	Templating struct{ List []Variable }
}

// A Panel is a chart, or with the type "row" the title of those below it.
type Panel struct {
	Type, Title string
	GridPos     struct{ X, Y, W, H int }
	FieldConfig struct {
		Defaults struct {
			Unit     string
			Min, Max *float64
			Custom   struct{ FillOpacity float64 }
		}
	}
	Targets []Target
}

// A Target is a query of a panel.
type Target struct{ RefID, Expr, LegendFormat string }

// A Variable is replaced in queries by its values. Query is an object if Type is "query".
type Variable struct {
	Name, Type string
	Query      any
}

// Read reads the JSON of a dashboard.
func Read(path string) (*Dashboard, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var d Dashboard
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(d.Panels) == 0 {
		return nil, fmt.Errorf("%s has no panels", path)
	}
	return &d, nil
}

// Values are the values of a dashboard's variables.
type Values map[string]string

var labelValues = regexp.MustCompile(`^label_values\((.+), *(\w+)\)$`)

// Values returns the values of the variables where "All" is selected for each, and of
// $__rate_interval. A variable without values is an error.
func (d *Dashboard) Values(ctx context.Context, p Prometheus, rateInterval time.Duration) (Values, error) {
	values := Values{"__rate_interval": fmt.Sprintf("%dms", rateInterval.Milliseconds())}
	for _, v := range d.Templating.List {
		if v.Type != "query" {
			continue
		}
		query, _ := v.Query.(map[string]any)
		text, _ := query["query"].(string)
		call := labelValues.FindStringSubmatch(text)
		if call == nil {
			return nil, fmt.Errorf("variable %s: %q is not label_values(SERIES, LABEL)", v.Name, text)
		}
		found, err := p.LabelValues(ctx, call[1], call[2])
		if err == nil && len(found) == 0 {
			err = errors.New("no values")
		}
		if err != nil {
			return nil, fmt.Errorf("variable %s: %s: %w", v.Name, text, err)
		}
		for i, one := range found {
			found[i] = strings.ReplaceAll(regexp.QuoteMeta(one), `\`, `\\`) // in a string of PromQL
		}
		values[v.Name] = "(" + strings.Join(found, "|") + ")"
	}
	return values, nil
}

// Expand replaces variables in a query.
func (v Values) Expand(query string) (string, error) {
	var missing []string
	query = os.Expand(query, func(name string) string {
		value, ok := v[name]
		if !ok {
			missing = append(missing, name)
		}
		return value
	})
	if missing != nil {
		return "", fmt.Errorf("unknown variables %s", strings.Join(missing, ", "))
	}
	return query, nil
}

var inLegend = regexp.MustCompile(`\{\{ *(\w+) *\}\}`)

// Legend returns the name of a series.
func (t Target) Legend(s Series) string {
	return inLegend.ReplaceAllStringFunc(t.LegendFormat, func(label string) string {
		return s.Labels[inLegend.FindStringSubmatch(label)[1]]
	})
}

// Charts returns the panels that have queries, from the top left to the bottom right.
func (d *Dashboard) Charts() []Panel {
	charts := slices.DeleteFunc(slices.Clone(d.Panels), func(p Panel) bool { return p.Type == "row" })
	slices.SortStableFunc(charts, func(a, b Panel) int {
		if a.GridPos.Y != b.GridPos.Y {
			return a.GridPos.Y - b.GridPos.Y
		}
		return a.GridPos.X - b.GridPos.X
	})
	return charts
}
