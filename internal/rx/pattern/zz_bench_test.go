package pattern

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/realizar/realizar/internal/rx"
)

func TestZZ(t *testing.T) {
	b, _ := os.ReadFile("/tmp/pats.json")
	var list [][2]any
	json.Unmarshal(b, &list)
	bad := 0
	for _, p := range list {
		s := rx.NewSpace(1 << 20)
		begin := time.Now()
		e, err := Parse(s, p[0].(string), Options{})
		if err != nil {
			bad++
			t.Log(p[1], err)
			continue
		}
		n := s.Len()
		x := s.IsEmpty(e)
		if d := time.Since(begin); d > 5*time.Millisecond || x || s.Err() != nil {
			t.Log("slow", d, n, s.Len(), x, s.Err(), p[0])
		}
	}
	t.Log(len(list), bad)
}
