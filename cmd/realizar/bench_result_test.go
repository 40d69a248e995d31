package main

import (
	"bytes"
	"strings"
	"testing"
)

// TestBenchBeyondLimit checks that a share above 100% is explained, and no other.
func TestBenchBeyondLimit(t *testing.T) {
	app, _, _ := testApp(t)
	reads, bytesRead := 1e9, int64(1000)
	for name, test := range map[string]struct {
		share float64
		bytes *int64
		want  string
	}{
		"less":   {share: 1, bytes: &bytesRead},
		"caches": {1.25, &bytesRead, "\nA share of more than 100%: caches hold a part of what a step reads, and the limit is that of memory.\n"},
		"prompt": {1.25, nil, "\nA share of more than 100%: the machine was faster than when its limit was measured.\n"},
	} {
		result := &measurement{Test: "tg8", Device: "cpu", ShareOfLimit: &test.share}
		if test.bytes != nil {
			result.Bandwidth, result.StepBytes = &reads, test.bytes
		}
		b := &benchmark{benchCommand: &benchCommand{}, app: app, results: []*measurement{result}}
		var text bytes.Buffer
		if err := b.write(&text, 0); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(text.String(), "more than 100%") != (test.want != "") || !strings.HasSuffix(text.String(), test.want) {
			t.Errorf("%s:\n%s", name, &text)
		}
	}
}
