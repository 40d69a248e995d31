package driver

// A Graph is captured work of a stream.
type Graph struct {
	c      *Context
	handle uintptr
}

const captureThreadLocal = 1

// Capture runs f and stores the work that f queues on the stream in a graph, instead of running it.
// During the capture the context must not allocate, free, load or wait. After Capture the stream is
// an ordinary one again, even if f fails or panics.
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

// abandon ends an unwanted capture, even if the device was lost during the capture.
func (s *Stream) abandon() {
	c := s.c
	c.out.handle = 0
	if c.call(fnStreamEndCapture, s.handle, at(&c.out.handle)) == Success && c.out.handle != 0 {
		c.call(fnGraphDestroy, c.out.handle)
	}
}

// Nodes returns the number of launches, copies and fills in the graph.
func (g *Graph) Nodes() (int, error) {
	if g.handle == 0 {
		return 0, g.c.invalid(fnGraphGetNodes, "the graph is destroyed")
	}
	if err := g.c.do(fnGraphGetNodes, g.handle, 0, at(&g.c.out.size[0])); err != nil {
		return 0, err
	}
	return int(g.c.out.size[0]), nil
}

// Destroy destroys the graph, but not its instances. A second call does nothing.
func (g *Graph) Destroy() error { return destroy(g.c, fnGraphDestroy, &g.handle) }

// A GraphExec is a graph that can be launched.
type GraphExec struct {
	c      *Context
	handle uintptr
}

// Instantiate makes the graph ready to launch.
func (g *Graph) Instantiate() (*GraphExec, error) {
	if g.handle == 0 {
		return nil, g.c.invalid(fnGraphInstantiate, "the graph is destroyed")
	}
	if err := g.c.do(fnGraphInstantiate, at(&g.c.out.handle), g.handle, 0); err != nil {
		return nil, err
	}
	return &GraphExec{g.c, g.c.out.handle}, nil
}

// Upload copies the graph to the device, so that its first launch is as fast as later ones.
func (x *GraphExec) Upload(s *Stream) error { return x.on(fnGraphUpload, s) }

// Launch queues the whole graph. A graph does not run concurrently with itself: its next launch
// waits for the previous one, even on another stream.
func (x *GraphExec) Launch(s *Stream) error {
	s.waits = false // later work waits for the whole graph, which waits
	return x.on(fnGraphLaunch, s)
}

func (x *GraphExec) on(f function, s *Stream) error {
	if x.handle == 0 {
		return x.c.invalid(f, "the graph is destroyed")
	}
	return s.do(f, x.handle, s.handle)
}

// Destroy destroys the graph. A second call does nothing.
func (x *GraphExec) Destroy() error { return destroy(x.c, fnGraphExecDestroy, &x.handle) }
