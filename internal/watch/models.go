package watch

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// A ModelState is the state of a model on a server that loads and unloads models.
type ModelState string

// The states, the most interesting first.
const (
	ModelLoading  ModelState = "loading"
	ModelDraining ModelState = "draining"
	ModelReady    ModelState = "ready"
	ModelFailed   ModelState = "failed"
	ModelAbsent   ModelState = "absent"
	ModelUnknown  ModelState = "unknown" // any other state
)

// ModelStates are all states, in that order.
var ModelStates = []ModelState{ModelLoading, ModelDraining, ModelReady, ModelFailed, ModelAbsent, ModelUnknown}

// A ModelStatus is the status of a model.
type ModelStatus struct {
	Name              string // as the server writes it
	State             ModelState
	Requests, Waiting float64 // that use it, and that wait for it to be loaded
	Memory            float64 // bytes reserved for it on all devices
}

// rank orders models, the most interesting first: a model that is loading or draining, one with
// requests, a ready one, a failed one, and one that is not loaded.
func (m *ModelStatus) rank() int {
	switch {
	case m.State == ModelLoading, m.State == ModelDraining:
		return 0
	case m.Requests > 0 || m.Waiting > 0:
		return 1
	}
	return 1 + slices.Index(ModelStates, m.State)
}

// A Reserve is the memory of a device that models share, in bytes.
type Reserve struct {
	Device      string // as the server writes it
	Used, Limit float64
}

// Several reports whether the server has several models, which it loads and unloads.
func (s *Sample) Several() bool { return len(s.Statuses) > 1 }

// statuses reads the status of models and the memory that they share.
func (s *Sample) statuses(f metricFamilies) {
	of := map[string]*ModelStatus{}
	for _, m := range f["realizar_model_state"].GetMetric() {
		name := label(m, "model_name")
		one := of[name]
		if one == nil {
			if len(of) == maxModels {
				continue
			}
			one = &ModelStatus{Name: name, State: ModelUnknown}
			of[name] = one
		}
		if state := ModelState(label(m, "state")); value(m) == 1 && slices.Contains(ModelStates, state) {
			one.State = state
		}
	}
	for name, into := range map[string]func(*ModelStatus) *float64{
		"realizar_model_requests":         func(m *ModelStatus) *float64 { return &m.Requests },
		"realizar_model_waiting_requests": func(m *ModelStatus) *float64 { return &m.Waiting },
		"realizar_model_memory_bytes":     func(m *ModelStatus) *float64 { return &m.Memory },
	} {
		for _, m := range f[name].GetMetric() {
			if one := of[label(m, "model_name")]; one != nil {
				v := into(one)
				*v = sum(*v, value(m))
			}
		}
	}
	for _, m := range of {
		s.Statuses = append(s.Statuses, *m)
	}
	slices.SortFunc(s.Statuses, func(a, b ModelStatus) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), strings.Compare(a.Name, b.Name))
	})
	for _, m := range f["realizar_models_memory_limit_bytes"].GetMetric() {
		if limit := value(m); limit > 0 && len(s.Reserves) < maxDevices {
			s.Reserves = append(s.Reserves, Reserve{Device: label(m, "device"), Limit: limit})
		}
	}
	slices.SortFunc(s.Reserves, func(a, b Reserve) int { return strings.Compare(a.Device, b.Device) })
	s.Reserves = slices.CompactFunc(s.Reserves, func(a, b Reserve) bool { return a.Device == b.Device })
	for _, m := range f["realizar_models_memory_bytes"].GetMetric() {
		if i := slices.IndexFunc(s.Reserves, func(r Reserve) bool { return r.Device == label(m, "device") }); i >= 0 && !math.IsNaN(value(m)) {
			s.Reserves[i].Used = value(m)
		}
	}
}
