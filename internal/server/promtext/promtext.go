// Package promtext writes metrics in the text format of Prometheus. It formats names, descriptions
// and labels once, and values at each scrape.
package promtext

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// ContentType is the media type of the text.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// A Metric is a gauge, a counter or a histogram. It has a series for each combination of the values
// of its labels. All its series stand behind its head, without those of other metrics.
type Metric struct {
	head  string
	value series // of a gauge or a counter

	bucket, sum, count series // of a histogram
}

// Gauge returns a gauge.
func Gauge(name, help string, labels ...string) *Metric {
	return &Metric{head: head(name, help, "gauge"), value: newSeries(name, labels)}
}

// Counter returns a counter.
func Counter(name, help string, labels ...string) *Metric {
	return &Metric{head: head(name, help, "counter"), value: newSeries(name, labels)}
}

// Histogram returns a histogram.
func Histogram(name, help string, labels ...string) *Metric {
	return &Metric{
		head: head(name, help, "histogram"), bucket: newSeries(name+"_bucket", append(labels[:len(labels):len(labels)], "le")),
		sum: newSeries(name+"_sum", labels), count: newSeries(name+"_count", labels),
	}
}

func head(name, help, kind string) string {
	return fmt.Sprintf("# HELP %s %s\n# TYPE %s %s\n", name, strings.NewReplacer(`\`, `\\`, "\n", `\n`).Replace(help), name, kind)
}

// AppendHead appends the description and the type of m to b.
func (m *Metric) AppendHead(b []byte) []byte { return append(b, m.head...) }

// Append appends a series of a gauge or a counter to b. labels are the values of its labels.
func (m *Metric) Append(b []byte, v float64, labels ...string) []byte {
	return append(appendFloat(m.value.append(b, labels), v), '\n')
}

// AppendHistogram appends the series of a histogram to b. counts are the numbers of values in each
// bucket, one more than bounds, or nil if there are no values. labels are the values of its labels.
func (m *Metric) AppendHistogram(b []byte, bounds []float64, counts []uint64, sum float64, labels ...string) []byte {
	start := len(b)
	b = m.bucket.append(b, labels)
	bound := len(b)
	var below uint64
	for i := range len(bounds) + 1 {
		if i > 0 {
			b = append(b, b[start:bound]...)
		}
		if i < len(bounds) {
			b = appendFloat(b, bounds[i])
		} else {
			b = append(b, "+Inf"...)
		}
		if counts != nil {
			below += counts[i]
		}
		b = append(b, m.bucket[len(labels)+1]...)
		b = append(strconv.AppendUint(b, below, 10), '\n')
	}
	b = append(appendFloat(m.sum.append(b, labels), sum), '\n')
	return append(strconv.AppendUint(m.count.append(b, labels), below, 10), '\n')
}

// A series is the name of a series and its labels without their values: the text before each value,
// and the text behind the last.
type series []string

func newSeries(name string, labels []string) series {
	var s series
	before := name
	for i, l := range labels {
		if i == 0 {
			before += "{"
		} else {
			before = `",`
		}
		s = append(s, before+l+`="`)
	}
	if len(labels) > 0 {
		before = `"}`
	}
	return append(s, before+" ")
}

// append appends the text up to the label behind those with the given values.
func (s series) append(b []byte, values []string) []byte {
	for i, v := range values {
		b = appendEscaped(append(b, s[i]...), v)
	}
	return append(b, s[len(values)]...)
}

// appendEscaped appends the value of a label. Invalid UTF-8 is replaced by U+FFFD, as Prometheus
// refuses it together with all other metrics.
func appendEscaped(b []byte, s string) []byte {
	for _, r := range s {
		switch r {
		case '\\', '"':
			b = append(b, '\\', byte(r))
		case '\n':
			b = append(b, `\n`...)
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return b
}

// appendFloat appends v, without an exponent if it is a whole number.
func appendFloat(b []byte, v float64) []byte {
	if n := int64(v); float64(n) == v && -1e15 < v && v < 1e15 {
		return strconv.AppendInt(b, n, 10)
	}
	return strconv.AppendFloat(b, v, 'g', -1, 64)
}
