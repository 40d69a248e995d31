package realizar_test

import (
	"errors"
	"testing"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/modeltest"
)

func TestSplit(t *testing.T) {
	for _, s := range []realizar.Split{realizar.SplitAuto, realizar.SplitTensor, realizar.SplitLayers} {
		if got, err := realizar.ParseSplit(s.String()); err != nil || got != s {
			t.Errorf("%v is %v, %v", s, got, err)
		}
	}
	for _, text := range []string{"layer", "Auto", "Split(3)"} {
		if got, err := realizar.ParseSplit(text); !errors.Is(err, realizar.ErrOptions) {
			t.Errorf("%q is %v, %v", text, got, err)
		}
	}
	if got, err := realizar.ParseSplit(""); err != nil || got != realizar.SplitAuto {
		t.Errorf("the empty text is %v, %v", got, err)
	}
}

// By layers, devices have the states of their own layers, and no weight twice but the table that the
// first one embeds with and the last one computes logits with.
func TestPartsByLayer(t *testing.T) {
	d := describe(t, modeltest.Llama(t))
	parts := map[realizar.Split][]realizar.PartMemory{}
	for _, split := range []realizar.Split{realizar.SplitTensor, realizar.SplitLayers} {
		all, err := d.Parts(t.Context(), realizar.Options{Device: "auto", Split: split}, 2)
		if err != nil || len(all) != 2 || all[0].Weights <= 0 || all[1].Weights <= 0 || all[0].States <= 0 || all[1].States <= 0 {
			t.Fatalf("%v: %+v, %v", split, all, err)
		}
		parts[split] = all
	}
	sum := func(all []realizar.PartMemory) int64 { return all[0].States + all[1].States }
	if tensor, layers := sum(parts[realizar.SplitTensor]), sum(parts[realizar.SplitLayers]); tensor != layers {
		t.Errorf("%d bytes of states in layers, %d in shares of each", layers, tensor)
	}
}
