//go:build unix

package main_test

import (
	"encoding/json"
	"io"
	"os"
	"testing"
)

// TestTopJSONFollows follows a server that disappears and returns: each reading is a line.
func TestTopJSONFollows(t *testing.T) {
	first, second, restarted := recordedPage(t, "first.txt"), recordedPage(t, "second.txt"), recordedPage(t, "restarted.txt")
	url, _ := metricsServer(t, "", first, second, "", "", restarted, restarted)
	cmd, _, stdout, stderr := start(t, "top", url, "--json", "--interval", "100ms")
	lines := json.NewDecoder(stdout)
	for i, want := range []struct {
		says      string
		restarted bool
	}{{"status 503: the model is being loaded", false}, {"", false}, {"status 503: the model is being loaded", false}, {"status 503: the model is being loaded", false}, {"", true}, {"", false}} {
		var got topLine
		if err := lines.Decode(&got); err != nil {
			t.Fatal(err)
		}
		if got.Error != want.says || got.Restarted != want.restarted || (got.Away != nil) != (want.says != "") || (got.Models != nil) != (want.says == "") {
			t.Errorf("line %d is %+v, want error %q, restarted %v", i, got, want.says, want.restarted)
		}
		if i == 3 && *got.Away <= 0 {
			t.Errorf("away for %v s at the second look", *got.Away)
		}
		if want.restarted && got.Seconds < .2 {
			t.Errorf("three intervals took %v s", got.Seconds)
		}
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, stdout)
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 130 || stderr.Len() > 0 {
		t.Errorf("exit code %d, standard error %q", code, stderr)
	}
}
