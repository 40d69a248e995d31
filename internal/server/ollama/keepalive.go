package ollama

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/realizar/realizar/internal/server/fields"
)

// A keepAlive is how long the model shall stay. It stays anyhow; unload says that the
// request wants it to go.
type keepAlive struct{ unload bool }

const keepAliveTakes = `a number of seconds, or a duration such as "5m"; the model stays, whatever it says`

// keepAliveField is the field of a request that has one.
func keepAliveField[R any](of func(*R) *keepAlive) fields.Field[R] {
	return fields.New("keep_alive", keepAliveTakes, "the model stays", func(r *R, v json.RawMessage) error {
		text := string(v)
		if v[0] == '"' {
			if err := fields.ReadText(v, &text); err != nil {
				return err
			}
		}
		if seconds, err := strconv.ParseFloat(text, 64); err == nil {
			of(r).unload = seconds == 0
			return nil
		}
		d, err := time.ParseDuration(text)
		if err != nil || v[0] != '"' {
			return fields.ErrWrong
		}
		of(r).unload = d == 0
		return nil
	})
}
