package dashboard

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"
	"time"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Parse(pageText))

// A Window is the time that a drawing shows.
type Window struct {
	Start, End time.Time
	Scrape     time.Duration // the interval between scrapes
}

// The size of a drawing, in pixels: Width, heights of a panel are in units of the dashboard.
const (
	Width  = 1200
	unit   = 24 // height of a unit of the dashboard, in which panels are placed
	gap    = 6
	header = 44
)

// colors of series, in order.
var colors = []string{"#4e9a3f", "#c99a00", "#3d71d9", "#e0752d", "#c4313f", "#8a4fbf", "#2a9d9d", "#7a7a7a"}

// A box is what page.html shows of a panel.
type box struct {
	Title                      string
	Row                        bool
	Left, Top, Wide, High      int
	PlotX, PlotY, PlotW, PlotH float64
	Marks                      []mark
	Times                      []mark
	Lines                      []line
	Names                      []line
	Empty                      bool
}

type mark struct {
	At   float64
	Text string
}

type line struct{ Name, Color, Path, Area string }

// Draw returns a page in HTML with what the dashboard shows of a window, and the height of the page.
func (d *Dashboard) Draw(ctx context.Context, p Prometheus, w Window) ([]byte, int, error) {
	step := max(w.Scrape, (w.End.Sub(w.Start) / 300).Round(time.Second))
	values, err := d.Values(ctx, p, max(step+w.Scrape, 4*w.Scrape)) // as Grafana has it
	if err != nil {
		return nil, 0, err
	}
	var boxes []box
	height := 0
	for _, panel := range d.Panels {
		b := place(panel)
		height = max(height, b.Top+b.High+gap)
		if !b.Row {
			if err := b.draw(ctx, p, panel, values, w, step); err != nil {
				return nil, 0, fmt.Errorf("panel %q: %w", panel.Title, err)
			}
		}
		boxes = append(boxes, b)
	}
	var out bytes.Buffer
	err = page.Execute(&out, map[string]any{
		"Title": d.Title, "Boxes": boxes, "Width": Width, "Height": height,
		"Time": w.Start.UTC().Format("2006-01-02 15:04:05") + " to " + w.End.UTC().Format("15:04:05") + " UTC",
	})
	return out.Bytes(), height, err
}

// place returns the place of a panel. A row of the dashboard has 24 units.
func place(p Panel) box {
	left, right := p.GridPos.X*(Width-gap)/24, (p.GridPos.X+p.GridPos.W)*(Width-gap)/24
	b := box{
		Title: p.Title, Row: p.Type == "row",
		Left: left + gap, Top: p.GridPos.Y*unit + header, Wide: right - left - gap, High: p.GridPos.H*unit - gap,
	}
	b.PlotX, b.PlotY = 64, 8
	b.PlotW, b.PlotH = float64(b.Wide)-b.PlotX-14, float64(b.High)-28-b.PlotY-56 // two lines of names
	return b
}

// draw queries what a panel shows and makes lines of it.
func (b *box) draw(ctx context.Context, p Prometheus, panel Panel, values Values, w Window, step time.Duration) error {
	type named struct {
		name   string
		points []Point
	}
	var all []named
	low, high := math.Inf(1), math.Inf(-1)
	for _, t := range panel.Targets {
		query, err := values.Expand(t.Expr)
		if err != nil {
			return err
		}
		found, err := p.Range(ctx, query, w.Start, w.End, step)
		if err != nil {
			return err
		}
		slices.SortFunc(found, func(a, b Series) int { return cmp.Compare(t.Legend(a), t.Legend(b)) })
		for _, s := range found {
			all = append(all, named{t.Legend(s), s.Points})
			for _, at := range s.Points {
				if !math.IsNaN(at.Value) && !math.IsInf(at.Value, 0) {
					low, high = min(low, at.Value), max(high, at.Value)
				}
			}
		}
	}
	b.Empty = math.IsInf(low, 1)
	if b.Empty {
		return nil
	}
	defaults := panel.FieldConfig.Defaults
	if defaults.Min != nil {
		low = *defaults.Min
	}
	if defaults.Max != nil {
		high = *defaults.Max
	}
	ticks := scale(low, high, defaults.Unit)
	if defaults.Max == nil {
		high = max(high, ticks[len(ticks)-1])
	}
	y := func(v float64) float64 { return b.PlotY + b.PlotH*(1-(v-low)/(high-low)) }
	x := func(t float64) float64 {
		return b.PlotX + b.PlotW*(t-float64(w.Start.UnixMilli())/1000)/w.End.Sub(w.Start).Seconds()
	}
	for _, v := range ticks {
		b.Marks = append(b.Marks, mark{y(v), format(v, ticks[1]-ticks[0], defaults.Unit)})
	}
	every := round(w.End.Sub(w.Start) / 4)
	for t := w.Start.Truncate(every).Add(every); t.Before(w.End); t = t.Add(every) {
		b.Times = append(b.Times, mark{x(float64(t.UnixMilli()) / 1000), t.UTC().Format("15:04")})
	}
	for i, s := range all {
		l := line{Name: s.name, Color: colors[i%len(colors)]}
		b.Names = append(b.Names, l)
		for _, part := range parts(s.points, step) {
			var path strings.Builder
			for _, at := range part {
				fmt.Fprintf(&path, "%.1f,%.1f ", x(at.Time), y(min(at.Value, high)))
			}
			l.Path, l.Area = path.String(), ""
			if defaults.Custom.FillOpacity > 0 {
				l.Area = fmt.Sprintf("%.1f,%.1f %s%.1f,%.1f", x(part[0].Time), b.PlotY+b.PlotH, l.Path, x(part[len(part)-1].Time), b.PlotY+b.PlotH)
			}
			b.Lines = append(b.Lines, l)
		}
	}
	return nil
}

// round returns the distance of marks on the axis of time.
func round(d time.Duration) time.Duration {
	for _, m := range []time.Duration{1, 2, 5, 10, 15, 30, 60, 120, 180, 360} {
		if d <= m*time.Minute {
			return m * time.Minute
		}
	}
	return d.Round(24 * time.Hour)
}

// parts divides points where values are missing or not finite.
func parts(points []Point, step time.Duration) [][]Point {
	var list [][]Point
	last := math.Inf(-1)
	for _, at := range points {
		if math.IsNaN(at.Value) || math.IsInf(at.Value, 0) {
			last = math.Inf(-1)
			continue
		}
		if at.Time-last > 1.5*step.Seconds() {
			list = append(list, nil)
		}
		list[len(list)-1] = append(list[len(list)-1], at)
		last = at.Time
	}
	return list
}

// scale returns round numbers from low to high or a little more, at least two.
func scale(low, high float64, unit string) []float64 {
	base := 10.0
	if unit == "bytes" {
		base = 1024
	}
	if high <= low {
		high = low + 1
	}
	distance := (high - low) / 4
	power := math.Pow(base, math.Floor(math.Log(distance)/math.Log(base)))
	steps := []float64{1, 2, 2.5, 5, 10}
	if unit == "bytes" {
		steps = []float64{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024}
	}
	for _, s := range steps {
		if s*power >= distance {
			distance = s * power
			break
		}
	}
	ticks := []float64{math.Floor(low/distance) * distance}
	for ticks[len(ticks)-1] < high-distance*1e-6 {
		ticks = append(ticks, ticks[len(ticks)-1]+distance)
	}
	return ticks
}

// format writes a value on an axis whose marks have a distance.
func format(v, distance float64, unit string) string {
	pick := func(v, base float64, names ...string) string {
		if v == 0 {
			return "0" + names[0]
		}
		i := 0
		for i < len(names)-1 && math.Abs(v) >= base {
			v, distance, i = v/base, distance/base, i+1
		}
		digits := 0
		for d := distance; math.Abs(d-math.Round(d)) > 0.001 && digits < 3; d *= 10 {
			digits++
		}
		return strings.TrimSpace(fmt.Sprintf("%.*f", digits, v) + names[i])
	}
	switch unit {
	case "percentunit":
		v, distance = v*100, distance*100
		return pick(v, math.Inf(1), "%")
	case "s":
		if v != 0 && math.Abs(v) < 1 {
			v, distance = v*1000, distance*1000
			return pick(v, math.Inf(1), " ms")
		}
		return pick(v, math.Inf(1), " s")
	case "bytes":
		return pick(v, 1024, " B", " KiB", " MiB", " GiB", " TiB")
	case "reqps":
		return pick(v, 1000, " req/s", "K req/s")
	case "ops":
		return pick(v, 1000, " ops/s", "K ops/s")
	case "none":
		return pick(v, math.Inf(1), "")
	}
	return pick(v, 1000, "", " K", " Mil")
}

// Right, Bottom, Axis and Below are places around the plot.
func (b box) Right() float64  { return b.PlotX + b.PlotW }
func (b box) Bottom() float64 { return b.PlotY + b.PlotH }
func (b box) Axis() float64   { return b.PlotX - 6 }
func (b box) Below() float64  { return b.Bottom() + 15 }
