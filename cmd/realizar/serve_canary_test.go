//go:build unix

package main_test

import (
	"io"
	"os"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/modelfile"
)

// Where something writes into a page of a model's file that is served from it, the log says
// so, and the server is not ready and says why, until the file is again what it was.
func TestServeOverwritten(t *testing.T) {
	path := modeltest.Llama(t)
	s := serve(t, path, "--activations", "f32")
	f, err := modelfile.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	all := f.Tensors()
	at := f.Size()
	for _, x := range all { // the tensors follow each other and end with the file
		at -= int64(len(x.Data))
	}
	table := all[0]
	if table.Name != "token_embd.weight" {
		t.Fatalf("the first tensor is %s", table.Name)
	}
	page := int64(os.Getpagesize())
	at += page - at%page // the first page of the table alone
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	w, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	whole, other := make([]byte, page), make([]byte, page)
	if _, err := w.ReadAt(whole, at); err != nil {
		t.Fatal(err)
	}
	for i := range whole {
		other[i] = whole[i] ^ 1
	}
	write := func(data []byte) {
		t.Helper()
		if _, err := w.WriteAt(data, at); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.status("/ready"); got != 200 {
		t.Fatalf("ready before: %d", got)
	}
	write(other)
	s.log.wait("the model's file has changed")
	resp, err := s.client.Get(s.url + "/ready")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 503 || !strings.Contains(string(body), "model_failed") || !strings.Contains(string(body), `token_embd.weight\": it has changed`) {
		t.Errorf("%d %s, %v", resp.StatusCode, body, err)
	}
	if text := s.log.String(); !strings.Contains(text, "level=ERROR") || !strings.Contains(text, "another program writes to the file") {
		t.Errorf("the log: %s", text)
	}
	write(whole)
	s.log.wait("the model's file is again what it was")
	if got := s.status("/ready"); got != 200 {
		t.Errorf("ready after: %d", got)
	}
	s.signal(os.Interrupt)
	if code := s.exit(); code != 0 {
		t.Errorf("exit status %d", code)
	}
}
