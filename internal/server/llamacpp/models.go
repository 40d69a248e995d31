package llamacpp

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/realizar/realizar/internal/pool"
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/fields"
)

// A modelEntry is how a model stands.
type modelEntry struct {
	ID       string      `json:"id"`
	Object   string      `json:"object"`
	Aliases  []string    `json:"aliases"`
	State    string      `json:"state"`
	Status   modelStatus `json:"status"`
	Pinned   bool        `json:"pinned"`
	Requests int         `json:"requests"`
	Waiting  int         `json:"waiting"`
	Memory   pool.Need   `json:"memory"`
	Used     *time.Time  `json:"last_used"`
	Expires  *time.Time  `json:"expires"`
	Loads    int         `json:"loads"`
	Failures int         `json:"failures"`
	Evicted  int         `json:"evictions"`
}

// modelStatus is the state in llama.cpp's words.
type modelStatus struct {
	Value  string `json:"value"`
	Failed bool   `json:"failed,omitempty"`
}

// deviceMemory is the memory of a device that models share, in bytes.
type deviceMemory struct {
	Used  int64 `json:"used"`
	Limit int64 `json:"limit"`
}

// words are llama.cpp's for states.
var words = map[pool.State]string{pool.Absent: "unloaded", pool.Loading: "loading", pool.Ready: "loaded", pool.Draining: "loaded", pool.Failed: "unloaded"}

// models is GET /models.
func models(x *server.Exchange) error {
	all := x.Server.Models()
	list := []modelEntry{}
	for _, m := range all.Models() {
		list = append(list, modelEntry{
			ID: m.Name, Object: "model", Aliases: append([]string{}, m.Aliases...), State: m.State.String(), Status: modelStatus{words[m.State], m.State == pool.Failed},
			Pinned: m.Pinned, Requests: m.Holds, Waiting: m.Waiting, Memory: m.Need, Used: known(m.Used), Expires: known(m.Expires),
			Loads: m.Counts.Loads, Failures: m.Counts.Failures, Evicted: m.Counts.Evictions,
		})
	}
	used, limits := all.Memory()
	memory := map[string]deviceMemory{}
	for device, limit := range limits {
		memory[device] = deviceMemory{used[device], limit}
	}
	return x.JSON(map[string]any{"object": "list", "data": list, "memory": memory})
}

// known is t, or nil where it is zero.
func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// A modelRequest is the body of a request about a model.
type modelRequest struct{ model string }

var modelFields = fields.List[modelRequest]{
	fields.Text("model", "", func(r *modelRequest) *string { return &r.model }),
}

// readModel is the model that a request is about.
func readModel(x *server.Exchange) (string, error) {
	var r modelRequest
	if err := server.Read(x, modelFields, &r); err != nil {
		return "", err
	}
	if r.model == "" {
		return "", fields.Missing("model")
	}
	m, err := x.Server.Find(r.model)
	return m.Name, err
}

// load is POST /models/load.
func load(x *server.Exchange) error {
	name, err := readModel(x)
	if err != nil {
		return err
	}
	if err := x.Server.Models().Load(x.Work(), name); err != nil {
		return err
	}
	return x.JSON(map[string]bool{"success": true})
}

// unload is POST /models/unload.
func unload(x *server.Exchange) error {
	name, err := readModel(x)
	if err != nil {
		return err
	}
	if err := x.Server.Models().Unload(x.Work(), name); err != nil {
		return err
	}
	return x.JSON(map[string]bool{"success": true})
}

// A modelEvent is a model's new state.
type modelEvent struct {
	Number uint64    `json:"number"`
	Time   time.Time `json:"time"`
	Model  string    `json:"model"`
	State  string    `json:"state"`
}

// events is GET /models/events: those that are kept, and those that come until the server drains.
func events(x *server.Exchange) error {
	var after uint64
	if last := x.Header.Get("Last-Event-ID"); last != "" {
		var err error
		if after, err = strconv.ParseUint(last, 10, 64); err != nil {
			return fields.Invalid("Last-Event-ID", "Last-Event-ID is %.50q; want the number of an event", last)
		}
	}
	s := x.Stream(server.Events, func(*server.Error) error { return nil }) // it has no error of its own
	s.Add([]byte(": the states of models\n\n"))
	for {
		list, more := x.Server.Models().Events(after)
		for _, e := range list {
			after = e.Number
			data, err := json.Marshal(modelEvent{e.Number, e.Time, e.Model, e.State.String()})
			if err != nil {
				return err
			}
			s.Add(strconv.AppendUint([]byte("id: "), e.Number, 10))
			s.Add([]byte{'\n'})
			s.AddEvent("", data)
		}
		if err := s.Flush(); err != nil {
			return err
		}
		select {
		case <-more:
		case <-x.Server.Draining():
			return nil
		case <-x.Work().Done():
			return nil
		}
	}
}
