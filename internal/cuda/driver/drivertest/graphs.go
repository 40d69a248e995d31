package drivertest

import "github.com/realizar/realizar/internal/cuda/driver"

type graph struct {
	nodes []func(graph bool) driver.Code
}

func (*graph) kind() string { return "graph" }

type graphExec struct {
	nodes []func(graph bool) driver.Code
}

func (*graphExec) kind() string { return "graph exec" }

func (s *slot) addGraphs() {
	s.add("cuStreamBeginCapture_v2", func(h uintptr, mode uint32) uintptr {
		return s.callInContext("cuStreamBeginCapture", func(f *Fake, _ int) driver.Code {
			const threadLocal = 1
			st, ok := object[*stream](f, h)
			if !ok || st.capture != nil || mode != threadLocal {
				return driver.InvalidValue
			}
			st.capture, st.thread, st.invalid = &graph{}, thread(), false
			return driver.Success
		})
	})
	s.add("cuStreamEndCapture", func(h uintptr, out *uintptr) uintptr {
		return s.callInContext("cuStreamEndCapture", func(f *Fake, _ int) driver.Code {
			st, ok := object[*stream](f, h)
			if !ok || st.capture == nil {
				return driver.InvalidValue
			}
			g := st.capture
			st.capture = nil
			if st.invalid {
				*out = 0
				return driver.CaptureInvalidated
			}
			*out = f.add(g)
			return driver.Success
		})
	})
	s.add("cuGraphGetNodes", func(h uintptr, nodes *uintptr, n *uint64) uintptr {
		return s.callInContext("cuGraphGetNodes", func(f *Fake, _ int) driver.Code {
			g, ok := object[*graph](f, h)
			if !ok || nodes != nil {
				return driver.InvalidValue
			}
			*n = uint64(len(g.nodes))
			return driver.Success
		})
	})
	s.add("cuGraphDestroy", func(h uintptr) uintptr {
		return s.callInContext("cuGraphDestroy", func(f *Fake, _ int) driver.Code { return remove[*graph](f, h) })
	})
	s.add("cuGraphInstantiateWithFlags", func(out *uintptr, h uintptr, _ uint64) uintptr {
		return s.callInContext("cuGraphInstantiateWithFlags", func(f *Fake, _ int) driver.Code {
			g, ok := object[*graph](f, h)
			if !ok {
				return driver.InvalidValue
			}
			*out = f.add(&graphExec{g.nodes})
			return driver.Success
		})
	})
	s.add("cuGraphUpload", func(x, h uintptr) uintptr {
		return s.callInContext("cuGraphUpload", func(f *Fake, _ int) driver.Code {
			if _, ok := object[*graphExec](f, x); !ok {
				return driver.InvalidValue
			}
			return f.enqueue(h, func(bool) driver.Code { return driver.Success })
		})
	})
	s.add("cuGraphLaunch", func(x, h uintptr) uintptr {
		return s.callInContext("cuGraphLaunch", func(f *Fake, _ int) driver.Code {
			exec, ok := object[*graphExec](f, x)
			if !ok {
				return driver.InvalidValue
			}
			return f.enqueue(h, func(bool) driver.Code {
				for _, node := range exec.nodes {
					if code := node(true); code != driver.Success {
						return code
					}
				}
				return driver.Success
			})
		})
	})
	s.add("cuGraphExecDestroy", func(x uintptr) uintptr {
		return s.callInContext("cuGraphExecDestroy", func(f *Fake, _ int) driver.Code { return remove[*graphExec](f, x) })
	})
}
