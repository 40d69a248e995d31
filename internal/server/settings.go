package server

import (
	"cmp"
	"fmt"
	"time"
)

// settings are the parts of a [Config] that may change while a server runs. A request keeps the
// settings with which it began.
type settings struct {
	maxBody         int64
	deadlines       Deadlines
	keys            *Keys
	origins         *origins
	lenient         bool
	logPrompts      bool
	streamKeepAlive time.Duration // 0: none
}

// newSettings returns the settings in c.
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

// Reload applies Parallel, MaxQueue, MaxBody, Deadlines, Keys, Hosts, Origins, Lenient, LogPrompts
// and StreamKeepAlive of c to requests from now on. It ignores the rest of c, and the times of
// Deadlines that [HTTP] uses. After an error nothing has changed.
func (s *Server) Reload(c Config) error {
	changed, err := newSettings(&c)
	if err != nil {
		return err
	}
	s.settings.Store(changed)
	s.admission.bound(cmp.Or(c.Parallel, s.config.Parallel) + c.MaxQueue)
	return nil
}
