package server

import (
	"cmp"
	"fmt"
	"time"
)

// settings are what of a [Config] may change while a server runs. A request keeps those
// that it came under.
type settings struct {
	maxBody         int64
	deadlines       Deadlines
	keys            *Keys
	origins         *origins
	lenient         bool
	logPrompts      bool
	streamKeepAlive time.Duration // 0: none
}

// newSettings are those of c.
func newSettings(c *Config) (*settings, error) {
	switch {
	case c.MaxQueue < 0:
		return nil, fmt.Errorf("server: a queue of %d; want 0 or more", c.MaxQueue)
	case c.MaxBody < 0:
		return nil, fmt.Errorf("server: bodies of %d bytes; want 1 or more, or 0 for %d", c.MaxBody, defaultMaxBody)
	}
	if c.StreamKeepAlive < 0 {
		return nil, fmt.Errorf("server: a comment every %v; want more than 0, or 0 for none", c.StreamKeepAlive)
	}
	deadlines := c.Deadlines
	if err := deadlines.complete(); err != nil {
		return nil, err
	}
	origins, err := newOrigins(c.Origins, c.Hosts, c.Keys != nil)
	if err != nil {
		return nil, err
	}
	return &settings{
		maxBody: cmp.Or(c.MaxBody, defaultMaxBody), deadlines: deadlines, keys: c.Keys, origins: origins,
		lenient: c.Lenient, logPrompts: c.LogPrompts, streamKeepAlive: c.StreamKeepAlive,
	}, nil
}

// Reload sets what requests are held to from now on: Parallel, MaxQueue, MaxBody, Deadlines, Keys,
// Hosts, Origins, Lenient, LogPrompts and StreamKeepAlive of c. The rest of c is not looked at, nor are the
// times of Deadlines that [HTTP] takes. After an error all is as it was.
func (s *Server) Reload(c Config) error {
	changed, err := newSettings(&c)
	if err != nil {
		return err
	}
	s.settings.Store(changed)
	s.admission.bound(cmp.Or(c.Parallel, s.config.Parallel) + c.MaxQueue)
	return nil
}
