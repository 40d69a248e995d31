package ollama

import (
	"encoding/json"
	"math"
	"strconv"
	"time"

	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/fields"
)

// A keepAlive is how long an idle model stays loaded: 0 unloads it at once, and less than 0 keeps
// it until other models need its memory.
type keepAlive struct {
	given bool
	time  time.Duration
}

const keepAliveTakes = `a number of seconds, or a duration such as "5m", that the model stays when nobody uses it; 0 unloads it, and less than 0 keeps it until others need its memory; a model that is pinned stays`

// keepAliveField returns the field keep_alive.
func keepAliveField[R any](of func(*R) *keepAlive) fields.Field[R] {
	return fields.New("keep_alive", keepAliveTakes, "the last request's, or the server's", func(r *R, v json.RawMessage) error {
		text, k := string(v), of(r)
		k.given = true
		if v[0] == '"' {
			if err := fields.ReadText(v, &text); err != nil {
				return err
			}
		}
		if seconds, err := strconv.ParseFloat(text, 64); err == nil && !math.IsNaN(seconds) {
			k.time = time.Duration(max(-1, min(seconds, longest.Seconds())) * float64(time.Second))
			return nil
		}
		d, err := time.ParseDuration(text)
		if err != nil || v[0] != '"' {
			return fields.ErrWrong
		}
		k.time = d
		return nil
	})
}

// longest bounds the time of a keepAlive.
const longest = 100 * 365 * 24 * time.Hour

// apply sets the time for the request's model.
func (k *keepAlive) apply(x *server.Exchange) {
	if k.given {
		x.KeepAlive(k.time)
	}
}

// unload reports whether the model should be unloaded at once.
func (k *keepAlive) unload() bool { return k.given && k.time == 0 }
