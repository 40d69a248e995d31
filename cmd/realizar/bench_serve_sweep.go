package main

import (
	"context"
	"fmt"
	"image/color"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/realizar/realizar/internal/load"
)

// A sweepOf reports the measurements of a sweep.
type sweepOf struct {
	Sweep     load.SweepBy   `json:"sweep"`
	Saturated string         `json:"saturated"` // why the last step shows that; empty: the server may give more
	Steps     []*load.Result `json:"steps"`
}

// sweep returns nil if nothing was measured.
func (c *benchServeCommand) sweep(a *app, o load.Options) (loadReport, error) {
	s := sweepOf{Sweep: c.Sweep.By}
	for i := range c.Sweep.Values {
		step := c.Sweep.Step(o, i)
		r, err := measure(a, step)
		if r != nil && (err == nil || r.Completed > 0) {
			s.Steps = append(s.Steps, r)
		}
		if err != nil && len(s.Steps) == 0 {
			return nil, err
		}
		if err != nil {
			return s, err
		}
		if s.Saturated = c.Sweep.Saturation(s.Steps); s.Saturated != "" || r.Completed == 0 {
			break
		}
	}
	return s, context.Cause(a.ctx)
}

// load returns the load of a step.
func (s sweepOf) load(r *load.Result) float64 {
	if s.Sweep == load.ByRate {
		return r.Rate
	}
	return float64(r.Concurrency)
}

func (s sweepOf) worst() error {
	if len(s.Steps) == 1 {
		return loadOf{s.Steps[0]}.worst()
	}
	return nil
}

// table returns a table with a row for each step.
func (s sweepOf) table(width int) string {
	t := newTable()
	head := []string{string(s.Sweep), "answered", "failed", "req/s", "tok/s", "first token 50%", "99%", "inter-token 50%", "99%"}
	goodput := s.Steps[0].Goodput
	if goodput != nil {
		head = append(head, "good", "good req/s")
	}
	t.row(head...)
	for _, r := range s.Steps {
		cells := []string{plainNumber(s.load(r)), strconv.Itoa(r.Completed), strconv.Itoa(r.Failed), rate(r.RequestRate), rate(r.AnswerRate)}
		for _, l := range []load.Latency{r.FirstToken, r.InterToken} {
			for _, ms := range []float64{l.P50, l.P99} {
				cell := "-"
				if l.Count > 0 {
					cell = millisecondText(ms)
				}
				cells = append(cells, cell)
			}
		}
		if g := r.Goodput; g != nil {
			cells = append(cells, fmt.Sprintf("%.1f%%", 100*g.Share), rate(g.RequestRate))
		}
		t.row(cells...)
	}
	columns := make([]int, len(head))
	for i := range columns {
		columns[i] = i
	}
	out := t.fit(width, columns...) + "\n"
	var failed []string
	for _, r := range s.Steps {
		if r.Failed > 0 {
			failed = append(failed, fmt.Sprintf("%s %s: %s", s.Sweep, plainNumber(s.load(r)), oneLine(firstFailure(r))))
		}
	}
	if len(failed) > 0 {
		out += fitted(strings.Join(failed, "\n"), width) + "\n\n"
	}
	return out + fitted(s.conditions(), width) + "\n"
}

// plainNumber formats v without trailing zeros.
func plainNumber(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// conditions describes the measurements, and why the sweep ended.
func (s sweepOf) conditions() string {
	r := s.Steps[0]
	prompt, _ := r.Prompt.MarshalText() // cannot fail
	answer, _ := r.Answer.MarshalText() // likewise
	what := fmt.Sprintf("%s, model %s, %s: prompts of %s tokens, answers of %s", r.URL, r.Model, r.Endpoint, prompt, answer)
	if r.Shared > 0 {
		what += fmt.Sprintf(", %d shared", r.Shared)
	}
	what += fmt.Sprintf(", seed %d; latencies in ms", r.Seed)
	if g := r.Goodput; g != nil {
		what += "; goodput is of " + g.SLO.String()
	}
	end := "the last load did not saturate the server"
	if s.Saturated != "" {
		end = "the sweep ended at saturation: " + s.Saturated
	}
	return what + "\n" + end
}

func (s sweepOf) draw(w io.Writer) error { return writeSVG(w, s.lay) }

// lay draws latencies over throughput, with a point for each step.
func (s sweepOf) lay(c draw.Canvas) error {
	p := newPlot("Latency over throughput; the numbers are "+map[load.SweepBy]string{load.ByConcurrency: "running requests", load.ByRate: "requests per second"}[s.Sweep],
		"Throughput (answer tokens/s)", "Latency (ms, log scale)")
	curves := []struct {
		name   string
		color  color.Color
		dashed bool
		of     func(*load.Result) (load.Latency, float64)
	}{
		{"first token, 99%", blue, true, func(r *load.Result) (load.Latency, float64) { return r.FirstToken, r.FirstToken.P99 }},
		{"first token, 50%", blue, false, func(r *load.Result) (load.Latency, float64) { return r.FirstToken, r.FirstToken.P50 }},
		{"inter-token, 99%", orange, true, func(r *load.Result) (load.Latency, float64) { return r.InterToken, r.InterToken.P99 }},
		{"inter-token, 50%", orange, false, func(r *load.Result) (load.Latency, float64) { return r.InterToken, r.InterToken.P50 }},
	}
	low, high, right := math.Inf(1), math.Inf(-1), 0.0
	for i, curve := range curves {
		var at plotter.XYLabels
		for _, r := range s.Steps {
			if l, ms := curve.of(r); l.Count > 0 {
				ms = max(ms, 1e-3)
				at.XYs = append(at.XYs, plotter.XY{X: r.AnswerRate, Y: ms})
				label := ""
				if i == 0 { // the others have their points below
					label = plainNumber(s.load(r))
				}
				at.Labels = append(at.Labels, label)
				low, high, right = min(low, ms), max(high, ms), max(right, r.AnswerRate)
			}
		}
		if len(at.XYs) == 0 {
			continue
		}
		if err := addSteps(p, curve.name, curve.color, curve.dashed, at); err != nil {
			return err
		}
	}
	if low > high {
		low, high, right = 1, 10, 1 // nothing to draw
	}
	if g := s.Steps[0].Goodput; g != nil {
		for _, o := range []struct {
			name  string
			most  time.Duration
			color color.Color
		}{{"ttft", g.SLO.FirstToken, blue}, {"itl", g.SLO.InterToken, orange}} {
			if o.most == 0 {
				continue
			}
			ms := float64(o.most) / float64(time.Millisecond)
			low, high = min(low, ms), max(high, ms)
			line, err := plotter.NewLine(plotter.XYs{{X: 0, Y: ms}, {X: right * 1.1, Y: ms}})
			if err != nil {
				return err
			}
			line.Color, line.Width, line.Dashes = o.color, vg.Points(0.8), []vg.Length{vg.Points(1), vg.Points(3)}
			p.Add(line)
			p.Legend.Add("objective "+o.name+"="+o.most.String(), line)
		}
	}
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.TickerFunc(decades)
	p.Y.Min, p.Y.Max = logLimits(low, high)
	p.X.Min, p.X.Max, p.X.Tick.Marker = 0, right*1.1, linearAxis(10)
	head, _, _ := strings.Cut(s.conditions(), "\n")
	beginDrawing(c, head)
	legend := p.Legend // to the right of the plot
	p.Legend = plot.NewLegend()
	legend.XOffs, legend.YOffs = 0, -2*plotGap
	p.Draw(draw.Crop(c, plotGap/2, -legendWidth, plotGap/2, -2*plotGap))
	legend.Draw(draw.Crop(c, c.Max.X-c.Min.X-legendWidth+plotGap, 0, 0, -2*plotGap))
	return nil
}

// addSteps draws a curve whose points have the given labels.
func addSteps(p *plot.Plot, name string, c color.Color, dashed bool, at plotter.XYLabels) error {
	line, points, err := plotter.NewLinePoints(at.XYs)
	if err != nil {
		return err
	}
	line.Color, line.Width = c, vg.Points(1.4)
	if dashed {
		line.Dashes = []vg.Length{vg.Points(5), vg.Points(3)}
	}
	points.Color, points.Shape, points.Radius = c, draw.CircleGlyph{}, vg.Points(2.2)
	labels, err := plotter.NewLabels(at)
	if err != nil {
		return err
	}
	styles := slices.Repeat([]text.Style{p.Legend.TextStyle}, len(at.XYs))
	for i := range styles {
		styles[i].Font.Size, styles[i].Color = vg.Points(8), c
	}
	labels.TextStyle, labels.Offset = styles, vg.Point{X: vg.Points(3), Y: vg.Points(4)}
	p.Add(line, points, labels)
	p.Legend.Add(name, line, points)
	return nil
}
