package main

import (
	"bytes"
	"image/color"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/realizar/realizar/internal/load"
)

// rounding is the relative error of ticks and limits.
const rounding = 1e-9

// The size of the drawing, and the space between its parts.
const (
	plotWidth  = 24 * vg.Centimeter
	plotHeight = 18 * vg.Centimeter
	plotGap    = 0.6 * vg.Centimeter

	legendWidth = 5.6 * vg.Centimeter // of one to the right of a plot
)

// Colours that are distinct for color-blind readers.
var (
	blue   = color.RGBA{0x00, 0x5f, 0xa3, 0xff}
	orange = color.RGBA{0xd5, 0x5e, 0x00, 0xff}
	green  = color.RGBA{0x00, 0x7f, 0x5f, 0xff}
	grey   = color.RGBA{0xd8, 0xd8, 0xd8, 0xff}
)

// writeSVG writes the drawing that lay draws.
func writeSVG(w io.Writer, lay func(draw.Canvas) error) error {
	canvas := vgsvg.New(plotWidth, plotHeight)
	if err := lay(draw.New(canvas)); err != nil {
		return err
	}
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return err
	}
	// The drawing names the font of its layout, which few machines have. These have the same
	// widths.
	_, err := w.Write(bytes.ReplaceAll(b.Bytes(), []byte("font-family:Liberation Sans"), []byte("font-family:'Liberation Sans',Arial,Helvetica,sans-serif")))
	return err
}

// layLoad draws the latencies at the top and the rates over time at the bottom.
func layLoad(c draw.Canvas, r *load.Result) error {
	waits, err := latencyPlot("Time to first token and to the end",
		curve{"first token", blue, r.FirstToken.Curve}, curve{"end to end", orange, r.EndToEnd.Curve})
	if err != nil {
		return err
	}
	gaps, err := latencyPlot("Time between tokens", curve{"inter-token", blue, r.InterToken.Curve}, curve{"per token", green, r.PerToken.Curve})
	if err != nil {
		return err
	}
	tokens, err := seriesPlot(r, "Answer tokens", "Throughput (tokens/s)", seriesCurve{"answer tokens", blue, r.Series.AnswerTokens})
	if err != nil {
		return err
	}
	requests, err := seriesPlot(r, "Requests", "Rate (requests/s)", seriesCurve{"answered", green, r.Series.Completed}, seriesCurve{"failed", orange, r.Series.Failed})
	if err != nil {
		return err
	}
	head, _, _ := strings.Cut(conditions(r), "\n")
	beginDrawing(c, head)
	tiles := draw.Tiles{Rows: 2, Cols: 2, PadX: plotGap, PadY: plotGap, PadTop: 2 * plotGap, PadBottom: plotGap / 2, PadLeft: plotGap / 2, PadRight: plotGap}
	plots := [][]*plot.Plot{{waits, gaps}, {tokens, requests}}
	for row, canvases := range plot.Align(plots, tiles, c) {
		for col, canvas := range canvases {
			plots[row][col].Draw(canvas)
		}
	}
	return nil
}

// beginDrawing clears c and draws a title line.
func beginDrawing(c draw.Canvas, head string) {
	c.SetColor(color.White)
	c.Fill(c.Path())
	style := plot.New().Legend.TextStyle
	sans(&style)
	style.Font.Size, style.XAlign, style.YAlign = vg.Points(9), draw.XLeft, draw.YTop
	c.FillText(style, vg.Point{X: c.Min.X + plotGap/2, Y: c.Max.Y - plotGap/2}, head)
}

func newPlot(title, x, y string) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.Title.Padding = 3 * vg.Millimeter
	for _, style := range []*text.Style{&p.Title.TextStyle, &p.X.Label.TextStyle, &p.Y.Label.TextStyle, &p.X.Tick.Label, &p.Y.Tick.Label, &p.Legend.TextStyle} {
		sans(style)
	}
	p.Y.Min = 0
	p.Legend.Padding = vg.Millimeter
	p.Legend.Left, p.Legend.Top, p.Legend.XOffs = true, true, plotGap/2
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = grey, grey
	p.Add(grid)
	return p
}

func sans(style *text.Style) { style.Font.Variant = "Sans" }

// A curve is a distribution.
type curve struct {
	name   string
	color  color.Color
	points []load.Point
}

// latencyPlot draws the share of times up to each value, over a logarithmic axis. The axis begins
// where a part of a curve has been reached, because parts that arrive together have times near
// zero.
func latencyPlot(title string, curves ...curve) (*plot.Plot, error) {
	const least = 1e-3
	p := newPlot(title, "Latency (ms, log scale)", "Cumulative share")
	p.Y.Max = 1.3 // room for the legend
	p.Y.Tick.Marker = plot.ConstantTicks{{Value: 0, Label: "0%"}, {Value: 0.25, Label: "25%"}, {Value: 0.5, Label: "50%"}, {Value: 0.75, Label: "75%"}, {Value: 1, Label: "100%"}}
	low, high := math.Inf(1), math.Inf(-1)
	for _, c := range curves {
		if len(c.points) == 0 {
			continue
		}
		xy := make(plotter.XYs, 0, len(c.points)+1)
		xy = append(xy, plotter.XY{X: max(least, c.points[0].Milliseconds)})
		for _, at := range c.points {
			xy = append(xy, plotter.XY{X: max(least, at.Milliseconds), Y: at.Share})
		}
		begin := slices.IndexFunc(c.points, func(at load.Point) bool { return at.Share >= 0.05 })
		low, high = min(low, max(least, c.points[begin].Milliseconds)), max(high, xy[len(xy)-1].X)
		if err := addLine(p, c.name, c.color, plotter.PreStep, xy); err != nil {
			return nil, err
		}
	}
	if low > high {
		low, high = 1, 10 // nothing to draw
	}
	p.X.Scale = plot.LogScale{}
	p.X.Min, p.X.Max = logLimits(low, high)
	p.X.Tick.Marker = plot.TickerFunc(decades)
	return p, nil
}

// decades marks the multiples of the powers of ten, and labels 1, 2 and 5 times them, or if there
// is no room for these the powers alone.
func decades(low, high float64) []plot.Tick {
	wide := math.Log10(high/low) > 2.5
	var ticks []plot.Tick
	for power := math.Floor(math.Log10(low)); power <= math.Ceil(math.Log10(high)); power++ {
		for factor := range 9 {
			factor++
			v := float64(factor) * math.Pow(10, power)
			if v < low*(1-rounding) || v > high*(1+rounding) {
				continue
			}
			t := plot.Tick{Value: v}
			if factor == 1 || !wide && (factor == 2 || factor == 5) {
				t.Label = strconv.FormatFloat(v, 'f', max(0, int(-power)), 64)
			}
			ticks = append(ticks, t)
		}
	}
	return ticks
}

// logLimits returns limits of a logarithmic axis for values from low to high: 1, 2 or 5 times powers
// of ten, so that at least two labels are on the axis.
func logLimits(low, high float64) (from, to float64) {
	low, high = low*(1+rounding), max(high, low*1.1)*(1-rounding)
	for power := math.Floor(math.Log10(low)); to == 0; power++ {
		for _, factor := range []float64{1, 2, 5} {
			switch v := factor * math.Pow(10, power); {
			case v <= low:
				from = v
			case v >= high && to == 0:
				to = v
			}
		}
	}
	if to/from > 316 { // decades labels powers of ten alone
		from, to = math.Pow(10, math.Floor(math.Log10(low))), math.Pow(10, math.Ceil(math.Log10(high)))
	}
	return from, to
}

// A linearAxis marks multiples of 1, 2 or 5 times a power of ten. It is the most steps between
// labels.
type linearAxis int

// Ticks implements [plot.Ticker].
func (n linearAxis) Ticks(low, high float64) []plot.Tick {
	power := math.Floor(math.Log10((high - low) / float64(n)))
	step, digits := math.Pow(10, power), max(0, int(-power))
	for _, factor := range []float64{1, 2, 5, 10} {
		if s := factor * math.Pow(10, power); (high-low)/s <= float64(n) {
			if step = s; factor == 10 {
				digits = max(0, digits-1)
			}
			break
		}
	}
	var ticks []plot.Tick
	for i := math.Ceil(low/step-rounding) + 0; i*step <= high+rounding*step; i++ {
		ticks = append(ticks, plot.Tick{Value: i * step, Label: strconv.FormatFloat(i*step, 'f', digits, 64)})
	}
	return ticks
}

// A seriesCurve is a number for each interval of time.
type seriesCurve struct {
	name   string
	color  color.Color
	counts []float64
}

// seriesPlot draws rates over the time of r.
func seriesPlot(r *load.Result, title, axis string, curves ...seriesCurve) (*plot.Plot, error) {
	p := newPlot(title, "Time (s)", axis)
	most := 0.0
	for _, c := range curves {
		var xy plotter.XYs
		interval := r.Series.Interval
		for i, n := range c.counts {
			begin := float64(i) * interval
			span := min(interval, r.Seconds-begin)
			if span <= 0 {
				break
			}
			// The last interval may be shorter. If it is too short for a rate, it belongs to the one
			// before.
			rest := r.Seconds - begin - span
			joined := rest > 0 && rest < interval/2 && i+1 < len(c.counts)
			if joined {
				span, n = span+rest, n+c.counts[i+1]
			}
			v := n / span
			most = max(most, v)
			xy = append(xy, plotter.XY{X: begin, Y: v}, plotter.XY{X: begin + span, Y: v})
			if joined {
				break
			}
		}
		if len(xy) == 0 {
			continue
		}
		if err := addLine(p, c.name, c.color, plotter.NoStep, xy); err != nil {
			return nil, err
		}
	}
	p.X.Min, p.X.Max = 0, max(r.Seconds, 1e-3)
	p.X.Tick.Marker, p.Y.Tick.Marker = linearAxis(8), linearAxis(7)
	p.Y.Max = max(most*1.3, 1e-3) // room for the legend
	return p, nil
}

func addLine(p *plot.Plot, name string, c color.Color, step plotter.StepKind, xy plotter.XYs) error {
	line, err := plotter.NewLine(xy)
	if err != nil {
		return err
	}
	line.Color, line.Width, line.StepStyle = c, vg.Points(1.4), step
	p.Add(line)
	p.Legend.Add(name, line)
	return nil
}
