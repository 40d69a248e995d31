package dashboard

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// A Prometheus is the address of a server of Prometheus, such as http://localhost:9090.
type Prometheus string

// A Series has the values of a query for one set of labels.
type Series struct {
	Labels map[string]string
	Points []Point
}

// A Point is a value at a time, in Unix seconds.
type Point struct{ Time, Value float64 }

// UnmarshalJSON reads [time, "value"].
func (p *Point) UnmarshalJSON(b []byte) error {
	var text string
	if err := json.Unmarshal(b, &[]any{&p.Time, &text}); err != nil {
		return err
	}
	var err error
	p.Value, err = strconv.ParseFloat(text, 64)
	return err
}

// Query returns the present values of a query.
func (p Prometheus) Query(ctx context.Context, query string) ([]Series, error) {
	var found struct {
		Result []struct {
			Metric map[string]string
			Value  Point
		}
	}
	if err := p.Get(ctx, "/api/v1/query", url.Values{"query": {query}}, &found); err != nil {
		return nil, err
	}
	list := make([]Series, len(found.Result))
	for i, r := range found.Result {
		list[i] = Series{r.Metric, []Point{r.Value}}
	}
	return list, nil
}

// Range returns the values of a query every step from start to end.
func (p Prometheus) Range(ctx context.Context, query string, start, end time.Time, step time.Duration) ([]Series, error) {
	var found struct {
		Result []struct {
			Metric map[string]string
			Values []Point
		}
	}
	values := url.Values{"query": {query}, "start": {seconds(start)}, "end": {seconds(end)}, "step": {strconv.FormatFloat(step.Seconds(), 'f', 3, 64)}}
	if err := p.Get(ctx, "/api/v1/query_range", values, &found); err != nil {
		return nil, err
	}
	list := make([]Series, len(found.Result))
	for i, r := range found.Result {
		list[i] = Series{r.Metric, r.Values}
	}
	return list, nil
}

func seconds(t time.Time) string { return strconv.FormatFloat(float64(t.UnixMilli())/1000, 'f', 3, 64) }

// LabelValues returns the values of a label of the selected series.
func (p Prometheus) LabelValues(ctx context.Context, selector, label string) ([]string, error) {
	var found []string
	err := p.Get(ctx, "/api/v1/label/"+url.PathEscape(label)+"/values", url.Values{"match[]": {selector}}, &found)
	return found, err
}

// Get reads the data that an address of the API answers with.
func (p Prometheus) Get(ctx context.Context, path string, values url.Values, data any) error {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, string(p)+path+"?"+values.Encode(), nil)
	if err != nil {
		return err
	}
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		return err
	}
	defer r.Body.Close() //nolint:errcheck // it was read
	text, err := io.ReadAll(io.LimitReader(r.Body, 64<<20))
	if err != nil {
		return err
	}
	answer := struct {
		Data  any
		Error string
	}{Data: data}
	if err := json.Unmarshal(text, &answer); err != nil {
		return fmt.Errorf("%s%s: status %d: %.200q", p, path, r.StatusCode, text)
	}
	if r.StatusCode != http.StatusOK {
		return fmt.Errorf("%s%s: status %d: %s", p, path, r.StatusCode, answer.Error)
	}
	return nil
}
