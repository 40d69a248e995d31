package promtext_test

import (
	"bytes"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"pgregory.net/rapid"

	"github.com/realizar/realizar/internal/server/promtext"
)

func TestText(t *testing.T) {
	up := promtext.Gauge("up", "Whether it is\nup; not \\ down.")
	b := up.Append(up.AppendHead(nil), 1)
	n := promtext.Counter("n_total", "Answers.", "name", "how")
	b = n.AppendHead(b)
	b = n.Append(b, 1234567890, "a", "stop")
	b = n.Append(b, .25, "a\\b\"c\nd\xff", "")
	s := promtext.Histogram("s", "Seconds.", "name")
	b = s.AppendHead(b)
	b = s.AppendHistogram(b, []float64{.001, 2.5, 10}, []uint64{1, 0, 3, 2}, 42.5, "a")
	b = s.AppendHistogram(b, nil, nil, 0, "b")
	all := promtext.Histogram("all", "")
	b = all.AppendHistogram(all.AppendHead(b), []float64{1}, []uint64{0, 1}, 1e300)
	const want = `# HELP up Whether it is\nup; not \\ down.
# TYPE up gauge
up 1
# HELP n_total Answers.
# TYPE n_total counter
n_total{name="a",how="stop"} 1234567890
n_total{name="a\\b\"c\nd�",how=""} 0.25
# HELP s Seconds.
# TYPE s histogram
s_bucket{name="a",le="0.001"} 1
s_bucket{name="a",le="2.5"} 1
s_bucket{name="a",le="10"} 4
s_bucket{name="a",le="+Inf"} 6
s_sum{name="a"} 42.5
s_count{name="a"} 6
s_bucket{name="b",le="+Inf"} 0
s_sum{name="b"} 0
s_count{name="b"} 0
# HELP all 
# TYPE all histogram
all_bucket{le="1"} 0
all_bucket{le="+Inf"} 1
all_sum 1e+300
all_count 1
`
	if diff := cmp.Diff(want, string(b)); diff != "" {
		t.Error(diff)
	}
}

// The parser of Prometheus finds every value and every label again.
func TestParsed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{0, math.Inf(1), math.Inf(-1), math.NaN(), 1e15, -1e15, 1 << 53, math.MaxInt64, math.MinInt64, 5e-324})).Draw(t, "value")
		label := rapid.String().Draw(t, "label")
		m := promtext.Gauge("m", rapid.StringMatching(`[^\r]*`).Draw(t, "help"), "l", "k")
		text := m.Append(m.AppendHead(nil), v, "x", label)
		parser := expfmt.NewTextParser(model.LegacyValidation)
		families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		got := families["m"].GetMetric()
		if len(got) != 1 || families["m"].GetType() != dto.MetricType_GAUGE || got[0].Label[1].GetValue() != label {
			t.Fatalf("%q is %v", text, got)
		}
		if x := got[0].GetGauge().GetValue(); x != v && !(math.IsNaN(x) && math.IsNaN(v)) {
			t.Errorf("%q is %v, want %v", text, x, v)
		}
	})
}
