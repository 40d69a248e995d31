package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/realizar/realizar/internal/watch"
)

// counted returns the number of models in each state.
func counted(models []watch.ModelStatus) map[watch.ModelState]int {
	n := map[watch.ModelState]int{}
	for i := range models {
		n[models[i].State]++
	}
	return n
}

// painted returns a text about a model in the color of the model's state.
func (f *frame) painted(state watch.ModelState, text string) string {
	switch state {
	case watch.ModelReady:
		return f.good(text)
	case watch.ModelLoading, watch.ModelDraining:
		return f.warn(text)
	case watch.ModelFailed:
		return f.bad(text)
	}
	return f.faint(text)
}

// models writes the number of models in each state, and their reserved memory.
func (f *frame) models(s *serverState) {
	n := counted(s.last.Statuses)
	var cells []string
	for _, state := range watch.ModelStates {
		if n[state] > 0 {
			cells = append(cells, f.painted(state, fmt.Sprintf("%d %s", n[state], state)))
		}
	}
	f.row("models", cells...)
	for i, r := range s.last.Reserves {
		if i == maxShown {
			f.row("", fmt.Sprintf("and %d devices more", len(s.last.Reserves)-i))
			break
		}
		f.row("reserved", f.bar(r.Used/r.Limit)+" "+f.strong(byteText(int64(r.Used))), "of "+byteText(int64(r.Limit)), briefly(r.Device, 60))
	}
}

// The rows of the table of models.
const (
	leastTable = 6  // without enough height, at the expense of other rows
	plainTable = 22 // without a limit of height
	leastName  = 4  // columns
)

// table returns a row for each model, but at most most rows, which is at least 3.
func (f *frame) table(models []watch.ModelStatus, most int) (rows []string) {
	shown := models
	if len(models) > most-1 {
		shown = models[:most-2]
	}
	space, head := strings.Repeat(" ", gap), []string{"model", "state", "requests", "waiting", "memory"}
	if f.width < 64 {
		space, head = " ", []string{"model", "state", "use", "wait", "memory"}
	}
	cells := [][]string{head}
	for i := range shown {
		m := &shown[i]
		memory := "-"
		if m.Memory > 0 {
			memory = byteText(int64(m.Memory))
		}
		cells = append(cells, []string{briefly(m.Name, 60), string(m.State), countText(m.Requests), countText(m.Waiting), memory})
	}
	widths := []int{latencyLabel, 8, len(head[2]), len(head[3]), 9} // the columns do not move when numbers change
	for _, row := range cells {
		for i, c := range row {
			widths[i] = max(widths[i], ansi.StringWidth(c))
		}
	}
	rest := 0
	for _, w := range widths[1:] {
		rest += len(space) + w
	}
	widths[0] = max(leastName, min(widths[0], f.width-rest))
	for i, row := range cells {
		name := middleOut(row[0], widths[0])
		name += strings.Repeat(" ", max(0, widths[0]-ansi.StringWidth(name)))
		state := fmt.Sprintf("%-*s", widths[1], row[1])
		numbers := ""
		for j, c := range row[2:] {
			numbers += fmt.Sprintf("%s%*s", space, widths[j+2], c)
		}
		if i == 0 {
			rows = append(rows, f.faint(name+space+state+numbers))
			continue
		}
		m := &shown[i-1]
		switch {
		case m.Waiting > 0 || m.Requests > 0:
			numbers = f.strong(numbers)
		case m.State == watch.ModelAbsent:
			name, numbers = f.faint(name), f.faint(numbers)
		}
		rows = append(rows, name+space+f.painted(m.State, state)+numbers)
	}
	if n := len(models) - len(shown); n > 0 {
		rows = append(rows, f.faint(fmt.Sprintf("and %d more", n)))
	}
	return rows
}

// middleOut shortens a name to a width in columns by its middle, because names of models differ at
// both ends.
func middleOut(name string, width int) string {
	wide := ansi.StringWidth(name)
	if wide <= width {
		return name
	}
	end := (width - 1) / 2
	return ansi.Truncate(name, width-1-end, "") + "…" + ansi.TruncateLeft(name, wide-end, "")
}

// insert inserts a table of models before the row at. It takes the rows that height leaves; a
// height of 0 means no limit.
func (f *frame) insert(at int, models []watch.ModelStatus, height int) {
	most := plainTable
	if height > 0 {
		most = max(leastTable, height-len(f.rows))
	}
	f.rows = slices.Insert(f.rows, at, f.table(models, most)...)
}
