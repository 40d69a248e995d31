package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/realizar/realizar/internal/watch"
)

// counted is how many models are in each state.
func counted(models []watch.ModelStatus) map[watch.ModelState]int {
	n := map[watch.ModelState]int{}
	for i := range models {
		n[models[i].State]++
	}
	return n
}

// painted is a text about a model, or the model's state, in the colour of the state.
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

// models is how many models are in which state, and what memory they have.
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
	leastTable = 6  // where there is little room, as many are there before other rows
	plainTable = 22 // where there is no bound
	leastName  = 4  // columns
)

// table is a row for each model, in so many rows at most, which are 3 or more.
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
	widths := []int{latencyLabel, 8, len(head[2]), len(head[3]), 9} // so that they stay where numbers change
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

// middleOut is a name without its middle where it is wider than so many columns: names of models
// differ at both ends.
func middleOut(name string, width int) string {
	wide := ansi.StringWidth(name)
	if wide <= width {
		return name
	}
	end := (width - 1) / 2
	return ansi.Truncate(name, width-1-end, "") + "…" + ansi.TruncateLeft(name, wide-end, "")
}

// insert puts a table of models before the row of that index, in the rows that a height leaves;
// 0: there is no bound.
func (f *frame) insert(at int, models []watch.ModelStatus, height int) {
	most := plainTable
	if height > 0 {
		most = max(leastTable, height-len(f.rows))
	}
	f.rows = slices.Insert(f.rows, at, f.table(models, most)...)
}
