package driver

// A Graph is work that a stream was given while it was captured.
type Graph struct {
	c      *Context
	handle uintptr
}

const captureThreadLocal = 1

// Capture runs f, during which what the stream is given is not done but kept in a
// graph. Meanwhile the context must not allocate, free, load or wait. Whatever f
// returns, and also when it panics, the stream is an ordinary one afterwards.
func (s *Stream) Capture(f func() error) (*Graph, error) {
	c := s.c
	if err := s.do(fnStreamBeginCapture, s.handle, captureThreadLocal); err != nil {
		return nil, err
	}
	captured := false
	defer func() {
		if !captured {
			s.abandon()
		}
	}()
	if err := f(); err != nil {
		return nil, err
	}
	if err := s.do(fnStreamEndCapture, s.handle, at(&c.out.handle)); err != nil {
		return nil, err
	}
	captured = true
	return &Graph{c, c.out.handle}, nil
}

// abandon ends a capture of which nothing is wanted, also where the device was
// lost in it.
func (s *Stream) abandon() {
	c := s.c
	c.out.handle = 0
	if c.call(fnStreamEndCapture, s.handle, at(&c.out.handle)) == Success && c.out.handle != 0 {
		c.call(fnGraphDestroy, c.out.handle)
	}
}

// Nodes is how many launches, copies and fillings the graph has.
func (g *Graph) Nodes() (int, error) {
	if g.handle == 0 {
		return 0, g.c.invalid(fnGraphGetNodes, "the graph is destroyed")
	}
	if err := g.c.do(fnGraphGetNodes, g.handle, 0, at(&g.c.out.size[0])); err != nil {
		return 0, err
	}
	return int(g.c.out.size[0]), nil
}

// Destroy lets go of the graph; what was instantiated of it stays. A second call
// does nothing.
func (g *Graph) Destroy() error { return destroy(g.c, fnGraphDestroy, &g.handle) }

// A GraphExec is a graph that can be launched.
type GraphExec struct {
	c      *Context
	handle uintptr
}

// Instantiate makes the graph ready to be launched.
func (g *Graph) Instantiate() (*GraphExec, error) {
	if g.handle == 0 {
		return nil, g.c.invalid(fnGraphInstantiate, "the graph is destroyed")
	}
	if err := g.c.do(fnGraphInstantiate, at(&g.c.out.handle), g.handle, 0); err != nil {
		return nil, err
	}
	return &GraphExec{g.c, g.c.out.handle}, nil
}

// Upload brings the graph to the device, so that its first launch is as quick as
// those after it.
func (x *GraphExec) Upload(s *Stream) error { return x.on(fnGraphUpload, s) }

// Launch gives the stream the whole graph. A graph runs once at a time: its next
// launch waits for the one before, also on another stream.
func (x *GraphExec) Launch(s *Stream) error {
	s.waits = false // what follows waits for the whole graph, which does
	return x.on(fnGraphLaunch, s)
}

func (x *GraphExec) on(f function, s *Stream) error {
	if x.handle == 0 {
		return x.c.invalid(f, "the graph is destroyed")
	}
	return s.do(f, x.handle, s.handle)
}

// Destroy lets go of the graph. A second call does nothing.
func (x *GraphExec) Destroy() error { return destroy(x.c, fnGraphExecDestroy, &x.handle) }
