package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot/vg/draw"

	"github.com/realizar/realizar/internal/load"
)

// loadFiles are the output files, created before the measurement.
type loadFiles struct{ json, svg *outFile }

func (c *benchServeCommand) newFiles() (f loadFiles, err error) {
	if c.JSON != nil && *c.JSON != "-" {
		if f.json, err = newOutFile(*c.JSON); err != nil {
			return f, err
		}
	}
	if c.SVG != nil {
		if f.svg, err = newOutFile(*c.SVG); err != nil {
			return f, errors.Join(err, f.finish(nil))
		}
	}
	return f, nil
}

// finish ends the files as [outFile.finish] does.
func (f loadFiles) finish(err error) error {
	for _, file := range []*outFile{f.json, f.svg} {
		if file != nil {
			err = file.finish(err)
		}
	}
	return err
}

func (f loadFiles) write(r loadReport) error {
	var err error
	if f.json != nil {
		err = writeLoadJSON(f.json, r)
	}
	if f.svg != nil && err == nil {
		err = r.draw(f.svg)
	}
	return f.finish(err)
}

func writeLoadJSON(w io.Writer, r loadReport) error {
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	return out.Encode(r)
}

// A loadOf reports one measurement.
type loadOf struct{ *load.Result }

func (l loadOf) draw(w io.Writer) error {
	return writeSVG(w, func(c draw.Canvas) error { return layLoad(c, l.Result) })
}

func (l loadOf) worst() error {
	if l.Completed == 0 && l.Failed > 0 {
		return fmt.Errorf("none of %d requests was answered: %s", l.Failed, firstFailure(l.Result))
	}
	return nil
}

// table returns the results as a table.
func (l loadOf) table(width int) string {
	r := l.Result
	rates := newTable()
	rates.row("", "total", "per second")
	rates.row("requests answered", strconv.Itoa(r.Completed), rate(r.RequestRate))
	rates.row("prompt tokens", strconv.Itoa(r.PromptTokens), rate(r.PromptRate))
	rates.row("answer tokens", strconv.Itoa(r.AnswerTokens), rate(r.AnswerRate))
	if g := r.Goodput; g != nil {
		rates.row("within "+g.SLO.String(), strconv.Itoa(g.Met), rate(g.RequestRate))
	}

	times := newTable()
	times.row("milliseconds", "mean", "50%", "90%", "95%", "99%", "max")
	rows := []struct {
		name string
		l    load.Latency
	}{{"first token", r.FirstToken}, {"inter-token", r.InterToken}, {"per token", r.PerToken}, {"end to end", r.EndToEnd}}
	for _, row := range rows {
		cells := []string{row.name}
		for _, ms := range []float64{row.l.Mean, row.l.P50, row.l.P90, row.l.P95, row.l.P99, row.l.Max} {
			cell := "-"
			if row.l.Count > 0 {
				cell = millisecondText(ms)
			}
			cells = append(cells, cell)
		}
		times.row(cells...)
	}
	return rates.text(1, 2) + "\n" + times.fit(width, 1, 2, 3, 4, 5, 6) + "\n" + failures(r) + fitted(conditions(r), width) + "\n"
}

// rate formats v with three digits or more.
func rate(v float64) string {
	if v < 10 {
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.1f", v)
}

func millisecondText(ms float64) string {
	switch {
	case ms < 10:
		return fmt.Sprintf("%.2f", ms)
	case ms < 1000:
		return fmt.Sprintf("%.1f", ms)
	}
	return fmt.Sprintf("%.0f", ms)
}

// failureKinds returns the kinds of errors, the most frequent first.
func failureKinds(r *load.Result) []string {
	return slices.SortedFunc(maps.Keys(r.Errors), func(a, b string) int {
		return cmp.Or(cmp.Compare(r.Errors[b].Count, r.Errors[a].Count), cmp.Compare(a, b))
	})
}

// failures returns a table of the failures and a blank line, or "".
func failures(r *load.Result) string {
	if r.Failed == 0 {
		return ""
	}
	t := newTable()
	t.row("failed", "requests", "message of the first")
	for _, kind := range failureKinds(r) {
		f := r.Errors[kind]
		t.row(kind, strconv.Itoa(f.Count), oneLine(f.First))
	}
	return t.text(1) + "\n"
}

// conditions describes the measurement in a few lines.
func conditions(r *load.Result) string {
	how := fmt.Sprintf("%d running requests", r.Concurrency)
	if r.Rate > 0 || r.Trace != "" {
		if how = fmt.Sprintf("%v requests per second", r.Rate); r.Trace != "" {
			how = fmt.Sprintf("requests of the trace %s over %.1f s", r.Trace, r.Due)
		}
		if r.Concurrency > 0 {
			how += fmt.Sprintf(", at most %d running", r.Concurrency)
		}
		if r.Late.Count > 0 {
			how += fmt.Sprintf(", sent at most %s ms late", millisecondText(r.Late.Max))
		}
	}
	lines := []string{fmt.Sprintf("%s, model %s, %s: %s, in %.1f s, seed %d", r.URL, r.Model, r.Endpoint, how, r.Seconds, r.Seed)}
	if r.CachedTokens > 0 {
		lines = append(lines, fmt.Sprintf("%.1f%% of the prompt tokens were in the cache of the server", 100*float64(r.CachedTokens)/float64(r.PromptTokens)))
	}
	if r.Chunks > 0 && r.Chunks != r.AnswerTokens {
		lines = append(lines, fmt.Sprintf("%.2f tokens per piece on average", float64(r.AnswerTokens)/float64(r.Chunks)))
	}
	if r.Uncounted > 0 {
		lines = append(lines, fmt.Sprintf("the server did not count the tokens of %d answers: each piece counts as one token, and their prompts as none", r.Uncounted))
	}
	if r.Abandoned > 0 {
		lines = append(lines, fmt.Sprintf("stopped early: %d running requests were abandoned", r.Abandoned))
	}
	return strings.Join(lines, "\n")
}
