package main

import (
	"fmt"
	"image/color"
	"math"
	"slices"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/realizar/realizar/internal/watch"
)

// A paint is the styles of a frame's parts.
type paint struct{ strong, faint, good, warn, bad func(...string) string }

var (
	plain   = paint{bare, bare, bare, bare, bare}
	colours = paint{bold.Render, faint.Render, inColour(lipgloss.Green), inColour(lipgloss.Yellow), inColour(lipgloss.Red)}
)

func inColour(c color.Color) func(...string) string {
	return lipgloss.NewStyle().Foreground(c).Render
}

func bare(text ...string) string { return strings.Join(text, " ") }

// The columns of a frame.
const (
	labelWidth   = 10
	gap          = 3 // between cells
	minWidth     = 40
	barWidth     = 24 // at most
	latencyLabel = 14
	latencyWidth = 8 // of each
)

// A frame is rows of text of a given width.
type frame struct {
	paint
	width int
	rows  []string
}

// row adds cells after a label.
func (f *frame) row(label string, cells ...string) {
	f.flow(f.faint(fmt.Sprintf("%-*s", labelWidth, label)), labelWidth, cells)
}

// flow adds cells after line, which takes the first columns of a row, in as many rows as they need.
// A cell that is wider than the row is cut.
func (f *frame) flow(line string, columns int, cells []string) {
	room := f.width - columns
	used := 0
	for _, c := range cells {
		if c == "" {
			continue
		}
		c = ansi.Truncate(c, room, "…")
		n := ansi.StringWidth(c)
		if used > 0 && used+gap+n > room {
			f.rows = append(f.rows, line)
			line, used = strings.Repeat(" ", columns), 0
		}
		if used > 0 {
			line, used = line+strings.Repeat(" ", gap), used+gap
		}
		line, used = line+c, used+n
	}
	f.rows = append(f.rows, line)
}

func (f *frame) blank() { f.rows = append(f.rows, "") }

// text returns the rows, each cut to the width. If height is not 0 and there are too many rows,
// first empty ones and then the last ones are left out.
func (f *frame) text(height int) string {
	var rows []string
	spare := len(f.rows) - height
	for _, r := range f.rows {
		if r == "" && height > 0 && spare > 0 {
			spare--
			continue
		}
		rows = append(rows, strings.TrimRight(ansi.Truncate(r, f.width, "…"), " "))
	}
	if height > 0 {
		rows = rows[:min(len(rows), height)]
	}
	return strings.Join(rows, "\n")
}

// bar draws shares of a whole, one after the other.
func (f *frame) bar(shares ...float64) string {
	width := max(8, min(barWidth, (f.width-labelWidth)/2))
	var b strings.Builder
	at, end := 0, 0.0
	for i, s := range shares {
		if math.IsNaN(s) {
			s = 0
		}
		end += s
		to := max(at, min(width, int(math.Round(end*float64(width)))))
		if s > 0 && to == at && at < width {
			to++ // a small share is visible
		}
		b.WriteString(f.good(strings.Repeat([]string{"█", "▒"}[i%2], to-at)))
		at = to
	}
	return b.String() + f.faint(strings.Repeat("░", width-at))
}

// frame draws a server's state in width columns and at most height rows. A height of 0 means no
// limit.
func (s *serverState) frame(width, height int, hint string, p paint) string {
	f := &frame{paint: p, width: max(minWidth, width)}
	f.title(s, hint)
	if s.last != nil {
		f.blank()
		table := 0
		if s.last.Several() {
			f.models(s)
			table = len(f.rows)
			f.blank()
		}
		f.requests(s)
		f.tokens(s, height == 0 || height >= roomyHeight)
		f.blank()
		f.cache(s)
		f.memory(s)
		f.blank()
		f.latencies(s)
		if table > 0 {
			f.insert(table, s.last.Statuses, height)
		}
	}
	f.width = max(1, width)
	return f.text(height)
}

// roomyHeight is the least height of terminals with room for a curve of several rows.
const roomyHeight = 32

// title writes the server's models, its address, whether it answers, and a hint.
func (f *frame) title(s *serverState, hint string) {
	var cells []string
	if s.last != nil {
		cells = append(cells, f.strong(servedText(s.last)))
	}
	cells = append(cells, briefly(s.url, 200))
	if s.last != nil && s.last.Up > 0 && s.away == nil {
		cells = append(cells, "up "+spanText(s.last.Up))
	}
	if s.between != nil && s.away == nil {
		cells = append(cells, "rates over "+spanText(secondsOf(s.between.Seconds)))
	}
	if hint != "" {
		cells = append(cells, f.faint(hint))
	}
	f.flow("", 0, cells)
	switch {
	case s.away != nil:
		note := fmt.Sprintf("no answer since %s, for %s: %s", s.since.Format(time.TimeOnly), spanText(s.at.Sub(s.since)), awayText(s.away))
		if s.last == nil && isUnreachable(s.away) {
			note += "; realizar serve MODEL starts a server"
		}
		complete, rest := wrap(note, f.width)
		for _, row := range append(complete, rest) {
			f.rows = append(f.rows, f.warn(row))
		}
		if s.last != nil {
			f.rows = append(f.rows, f.faint(fmt.Sprintf("This is of %s.", s.last.At.Format(time.TimeOnly))))
		}
	case s.at.Sub(s.anew) < time.Minute && !s.anew.IsZero():
		f.rows = append(f.rows, f.warn(fmt.Sprintf("The server was restarted; seen at %s.", s.anew.Format(time.TimeOnly))))
	case s.last == nil:
		f.rows = append(f.rows, f.faint("looking"))
	}
}

// maxNames is how many models a title names.
const maxNames = 8

// servedText says what a server serves.
func servedText(s *watch.Sample) string {
	switch n := max(len(s.Models), len(s.Statuses)); {
	case s.Several(), n > maxNames:
		return fmt.Sprintf("%d models", n)
	case n == 0 || len(s.Models) == 0:
		return "a server"
	}
	var names []string
	for _, m := range s.Models {
		names = append(names, briefly(m, 60))
	}
	return strings.Join(names, ", ")
}

// rate returns the rate of a counter in the last interval, or NaN if there is none.
func (s *serverState) rate(c watch.Counter) float64 {
	if s.between == nil {
		return math.NaN()
	}
	return s.between.Rate(c)
}

func (f *frame) requests(s *serverState) {
	waiting := countText(s.last.Waiting) + " waiting"
	if s.last.Waiting > 0 {
		waiting = f.warn(waiting)
	}
	f.row("answers", f.strong(countText(s.last.Running)+" running"), waiting)
	ended := 0.0
	var cells []string
	for _, e := range []struct {
		how string
		c   watch.Counter
	}{{"stop", watch.Stopped}, {"length", watch.Full}, {"abort", watch.Left}, {"error", watch.Failed}, {"other", watch.Other}} {
		if v := s.rate(e.c); !math.IsNaN(v) {
			ended += v
			if cell := rateText(v) + " " + e.how; e.c != watch.Failed || v == 0 {
				cells = append(cells, cell)
			} else {
				cells = append(cells, f.warn(cell))
			}
		}
	}
	if len(cells) == 0 {
		ended = math.NaN()
	}
	f.row("ended", append([]string{f.strong(rateText(ended) + "/s")}, cells...)...)
	if v := s.rate(watch.Errors); v > 0 {
		f.row("errors", f.warn(rateText(v)+"/s")+" refused or failed")
	}
}

func (f *frame) tokens(s *serverState, tall bool) {
	answer, prompt, steps := s.rate(watch.AnswerTokens), s.rate(watch.PromptTokens), s.rate(watch.Steps)
	cells := []string{f.strong(rateText(answer) + "/s answer"), rateText(prompt) + "/s prompt"}
	if v := s.rate(watch.ComputedTokens); !math.IsNaN(v) {
		cells = append(cells, rateText(v)+"/s computed")
	}
	f.row("tokens", cells...)
	rows := 1
	if tall {
		rows = 3
	}
	columns, each := s.history.columns(f.width - labelWidth)
	if curve, most := sparkline(columns, rows); len(curve) > 0 && len(s.history.values) > 1 {
		for _, row := range curve {
			f.row("", f.good(row))
		}
		f.row("", f.faint(fmt.Sprintf("answer tokens/s, %s each", time.Duration(each)*s.interval)), f.faint("at most "+rateText(most)))
	}
	if !math.IsNaN(s.last.Counter(watch.Steps)) {
		f.row("steps", f.strong(rateText(steps)+"/s"), rateText(answer/steps)+" answer tokens each")
	}
	if v := s.rate(watch.Proposed); s.last.Counter(watch.Proposed) > 0 && !math.IsNaN(v) {
		f.row("proposed", rateText(v)+"/s", percent(s.between.Right())+" right")
	}
	if !math.IsNaN(s.last.Counter(watch.StepSeconds)) {
		busy := math.NaN()
		if s.between != nil {
			busy = s.between.Busy()
		}
		f.row("busy", f.bar(busy)+" "+f.strong(percent(busy)))
	}
}

func (f *frame) cache(s *serverState) {
	if len(s.last.Pools) == 0 && !math.IsNaN(s.last.CacheUse) {
		f.row("cache", f.bar(s.last.CacheUse)+" "+f.strong(percent(s.last.CacheUse)), "used")
	}
	for i, p := range s.last.Pools {
		if i == maxShown {
			f.row("", fmt.Sprintf("and %d pools more", len(s.last.Pools)-i))
			break
		}
		label, model := "cache", ""
		if p.Number > 0 || slices.ContainsFunc(s.last.Pools, func(other watch.Pool) bool { return other.Model == p.Model && other.Number > 0 }) {
			label += fmt.Sprintf(" %d", p.Number)
		}
		if s.last.Several() {
			model = briefly(p.Model, 60)
		}
		all := p.Used + p.Idle + p.Empty
		f.row(label, f.bar(p.Used/all, p.Idle/all)+" "+f.strong(percent(p.Used/all))+" used", percent(p.Idle/all)+" kept", "of "+countText(all)+" pages", model)
		if host := p.HostUsed + p.HostEmpty; host > 0 {
			f.row("  on host", f.bar(p.HostUsed/host)+" "+percent(p.HostUsed/host)+" used", "of "+countText(host)+" pages")
		}
	}
	hits := math.NaN()
	if s.between != nil {
		hits = s.between.Hits()
	}
	f.row("prefixes", f.strong(percent(hits))+" of tokens found", percent(s.last.Hits())+" since start")
	var cells []string
	for _, e := range []struct {
		what string
		c    watch.Counter
	}{{"preempted", watch.Preemptions}, {"evicted", watch.Evictions}, {"saved", watch.Saves}, {"restored", watch.Restores}} {
		switch v := s.rate(e.c); {
		case math.IsNaN(v):
		case e.c == watch.Preemptions && v > 0:
			cells = append(cells, f.warn(rateText(v)+"/s "+e.what))
		default:
			cells = append(cells, rateText(v)+"/s "+e.what)
		}
	}
	if len(cells) > 0 {
		f.row("pages", cells...)
	}
}

// maxShown is how many pools and devices are shown.
const maxShown = 8

func (f *frame) memory(s *serverState) {
	for i, d := range s.last.Devices {
		if i == maxShown {
			f.row("", fmt.Sprintf("and %d devices more", len(s.last.Devices)-i))
			break
		}
		name := briefly(d.Name, 60)
		if d.Total == 0 {
			f.row("memory", "-", name)
			continue
		}
		used := d.Total - d.Free
		f.row("memory", f.bar(used/d.Total)+" "+f.strong(byteText(int64(used))), "of "+byteText(int64(d.Total)), name)
	}
}

func (f *frame) latencies(s *serverState) {
	var last [4]watch.Histogram
	var all [4]watch.Histogram
	kinds := []string{"first token", "between tokens", "end to end", "in the queue"}
	for l := range kinds {
		all[l] = s.last.Latency(watch.Latency(l))
		if s.between != nil {
			last[l] = s.between.Latency(watch.Latency(l))
		}
	}
	over := "last interval"
	if s.between != nil {
		over = "last " + spanText(secondsOf(s.between.Seconds))
	}
	const since = "since start"
	label := func(text string) string { return fmt.Sprintf("%-*s", latencyLabel, text) }
	space := strings.Repeat(" ", gap)
	if wide := ansi.StringWidth(label("") + space + space + percentiles + percentiles); f.width >= wide {
		right := func(text string) string { return fmt.Sprintf("%*s%*s", gap, "", len(percentiles), text) }
		f.rows = append(f.rows, f.faint(label("")+right(over)+right(since)), f.faint(label("latency")+right(percentiles)+right(percentiles)))
		for l, kind := range kinds {
			f.rows = append(f.rows, f.faint(label(kind))+right(quantiles(last[l]))+right(quantiles(all[l])))
		}
		return
	}
	for i, part := range [][4]watch.Histogram{last, all} {
		if i > 0 {
			f.blank()
		}
		f.rows = append(f.rows, f.faint(label([]string{over, since}[i])+percentiles))
		for l, kind := range kinds {
			f.rows = append(f.rows, f.faint(label(kind))+quantiles(part[l]))
		}
	}
}

// levels are the shares that the percentiles stand for.
var levels = []float64{.5, .9, .99}

var percentiles = inColumns("p50", "p90", "p99")

func inColumns(texts ...string) string {
	var b strings.Builder
	for i, t := range texts {
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "%*s", latencyWidth, t)
	}
	return b.String()
}

// quantiles returns the percentiles of a histogram, in columns.
func quantiles(h watch.Histogram) string {
	var texts []string
	for _, level := range levels {
		q := h.Quantile(level)
		text := latencyText(q.Value)
		if q.Above {
			text = ">" + text
		}
		texts = append(texts, text)
	}
	return inColumns(texts...)
}

// latencyText formats a latency with about three digits, in at most 8 characters.
func latencyText(seconds float64) string {
	switch ms := seconds * 1e3; {
	case math.IsNaN(seconds):
		return "-"
	case ms < 9.995:
		return fmt.Sprintf("%.2f ms", ms)
	case ms < 99.95:
		return fmt.Sprintf("%.1f ms", ms)
	case ms < 999.5:
		return fmt.Sprintf("%.0f ms", ms)
	case seconds < 99.95:
		return fmt.Sprintf("%.1f s", seconds)
	case seconds < 99999.5:
		return fmt.Sprintf("%.0f s", seconds)
	}
	return "> 1 day"
}

// countText formats a number that should be whole.
func countText(v float64) string {
	if v == math.Trunc(v) && v < 1e6 {
		return fmt.Sprintf("%.0f", v)
	}
	return rateText(v)
}

// rateText formats a number briefly, with about three digits.
func rateText(v float64) string {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return "-"
	case v == 0:
		return "0"
	case v < 9.995:
		return fmt.Sprintf("%.2f", v)
	case v < 99.95:
		return fmt.Sprintf("%.1f", v)
	case v < 1e6:
		return fmt.Sprintf("%.0f", v)
	case v < 1e9:
		return fmt.Sprintf("%.1fM", v/1e6)
	case v < 1e12:
		return fmt.Sprintf("%.1fG", v/1e9)
	}
	return fmt.Sprintf("%.2g", v)
}

func percent(share float64) string {
	if math.IsNaN(share) {
		return "-"
	}
	return fmt.Sprintf("%.0f%%", 100*share)
}

func secondsOf(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// spanText formats a duration in its two largest units.
func spanText(d time.Duration) string {
	switch s := int64(d.Round(time.Second).Seconds()); {
	case d > 0 && d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 3600:
		return fmt.Sprintf("%dm%02ds", s/60, s%60)
	case s < 24*3600:
		return fmt.Sprintf("%dh%02dm", s/3600, s/60%60)
	default:
		return fmt.Sprintf("%dd%02dh", s/86400, s/3600%24)
	}
}

// sparkline draws values as columns in rows of text, the highest row first. A full column is the
// largest value, which most returns. NaN leaves a column empty; if all values are NaN there are no
// rows.
func sparkline(values []float64, rows int) (lines []string, most float64) {
	known := false
	for _, v := range values {
		if !math.IsNaN(v) {
			most, known = max(most, v), true
		}
	}
	if !known {
		return nil, 0
	}
	eighths := []rune(" ▁▂▃▄▅▆▇█")
	for r := rows - 1; r >= 0; r-- {
		var b strings.Builder
		for _, v := range values {
			level := 0
			switch {
			case math.IsNaN(v):
			case most > 0:
				level = max(1, int(math.Round(v/most*float64(8*rows))))
			default:
				level = 1
			}
			b.WriteRune(eighths[min(8, max(0, level-8*r))])
		}
		lines = append(lines, b.String())
	}
	return lines, most
}
