// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process_test

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/belayproject/belay/internal/process"
)

// keep returns the lines that a Tail keeps of text that is written in pieces of the given length.
func keep(text string, piece int) []string {
	var t process.Tail
	for len(text) > 0 {
		n := min(piece, len(text))
		_, _ = t.Write([]byte(text[:n]))
		text = text[n:]
	}
	return t.LastLines()
}

func TestTailKeepsTheLastLinesWithinItsBounds(t *testing.T) {
	var many strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&many, "line %d\r\n\n", i)
	}
	for name, c := range map[string]struct {
		text  string
		first string
		last  string
		lines int
	}{
		"few":            {"a\nb", "a", "b", 2},
		"many":           {many.String(), "line 990", "line 999", 10},
		"without breaks": {strings.Repeat("x", 100_000), strings.Repeat("x", 1024), strings.Repeat("x", 1024), 1},
		"long lines": {
			strings.Repeat(strings.Repeat("y", 1000)+"\n", 30), strings.Repeat("y", 1000), strings.Repeat("y", 1000), 4,
		},
		"terminal": {"a\x1b[31mb\x00\tc\n", "a?[31mb? c", "a?[31mb? c", 1},
	} {
		for _, piece := range []int{1, 7, 4096} {
			got := keep(c.text, piece)
			if len(got) != c.lines || got[0] != c.first || got[len(got)-1] != c.last {
				t.Errorf("%s, written by %d: %d lines, %.40q to %.40q; want %d, %.40q to %.40q",
					name, piece, len(got), got[0], got[len(got)-1], c.lines, c.first, c.last)
			}
		}
	}
}

// The cause of a panic is its first line, above the stacks of hundreds of goroutines.
func TestTailKeepsTheCauseOfAPanic(t *testing.T) {
	var b strings.Builder
	b.WriteString("I1127 all is well\npanic: runtime error: index out of range\n\n")
	for i := range 200 {
		fmt.Fprintf(&b, "goroutine %d [running]:\nmain.f(0x1)\n\t/src/main.go:12 +0x1d\n"+
			"created by main.main in goroutine 1\n\t/src/main.go:3 +0x7\n\n", i)
	}
	got := keep(b.String(), 512)
	if len(got) < 3 || got[1] != "panic: runtime error: index out of range" || got[2] != "goroutine 0 [running]:" {
		t.Errorf("kept is %q, want the line of the panic and the first frames", got)
	}
	stacks := b.String()[strings.Index(b.String(), "goroutine"):]
	if got := keep("F1127 12:00:00.000001 77 b.go:2] cannot\n"+stacks, 512); !strings.HasPrefix(got[0], "F1127") {
		t.Errorf("kept is %q, want the fatal line above its stacks", got)
	}
	b.WriteString("I1127 recovered\n")
	if got := keep(b.String(), 512); got[len(got)-1] != "I1127 recovered" {
		t.Errorf("kept ends with %q, want the line after the stacks", got[len(got)-1])
	}
}

func TestTailCutsSecrets(t *testing.T) {
	const secret = "hunter2hunter2"
	jwt := "eyJhbGciOiJSUzI1NiJ9." + secret + ".c2ln"
	pem := "-----BEGIN RSA PRIVATE KEY-----\n" + secret + "\n" + secret + "\n-----END RSA PRIVATE KEY-----"
	for _, text := range []string{
		"Authorization: Bearer " + secret,
		`header "authorization": "bearer ` + secret + `"`,
		"token: " + secret, `"token":"` + secret + `"`, "token=" + secret, "--token=" + secret, "--token " + secret,
		`FLAG: --bootstrap-token="` + secret + `"`, `err="parsing {\"clientSecret\":\"` + secret + `\"}"`,
		"password: '" + secret + " with blanks'", `Password="a ` + secret + ` b"`, "apiKey: " + secret,
		"PRIVATE_KEY=" + secret,
		"dial https://admin:" + secret + "@10.0.0.1/", "got " + jwt + " back", "join with abcdef.0123456789abcdef",
		"Authorization: Basic " + secret + "==", "StaticPodURLHeader:map[Authorization:[Basic " + secret + "]]",
		"X-Api-Key: " + secret,
		`E1127 12:00:00.0 1 run.go:72] "command failed" err="failed to validate kubelet configuration, path: &{X:` + secret +
			`}"`,
		"    client-key-data: " + secret, `{"client-key-data":"` + secret + `"}`, "tls-key-data=" + secret,
		`err="\"client-key-data\": ` + secret + `"`,
		"key: " + secret, "  - key: " + secret, `"key":"` + secret + `"`, "tls.key: " + secret, `\"key\": \"` + secret + `\"`,
		"  LS0tLS1CRUdJTi" + secret + "==",
		pem, strings.ReplaceAll(pem, "\n", `\n`), "before " + pem + " after", pem[:60],
	} {
		for _, piece := range []int{1, 4096} {
			got := strings.Join(keep("first\n"+text+"\nlast\n", piece), "\n")
			if strings.Contains(got, secret) || strings.Contains(got, "0123456789abcdef") {
				t.Errorf("of %q it keeps %q", text, got)
			}
			if !strings.HasPrefix(got, "first\n") || !strings.Contains(got, "[cut]") {
				t.Errorf("of %q it keeps %q, want the line before and the mark of the cut", text, got)
			}
		}
	}
	for _, text := range []string{
		"found character that cannot start any token", "the basics", `err="open /etc/x: no such file or directory"`,
		"Get \"https://127.0.0.1:6443/api\": dial tcp: connection refused", "v1.2.3-4.567 of 10:12:01.123456",
		"client-key: /var/lib/kubelet/pki/client.pem", "monkey: 3", "keys: 12", `err="no such key: "`,
		"key=node/n1 was requeued",
	} {
		if got := keep(text, 4096); len(got) != 1 || got[0] != text {
			t.Errorf("of %q it keeps %q, want all of it", text, got)
		}
	}
}

// failing is a disk that is full behind a log.
type failing struct{ calls int }

func (f *failing) Write([]byte) (int, error) { f.calls++; return 0, syscall.ENOSPC }

func TestKeepTailOutlivesWhatIsBehindIt(t *testing.T) {
	for name, same := range map[string]bool{"two writers": false, "one writer": true} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command("sh", "-c", "for i in 1 2 3; do echo out $i; echo err $i >&2; done; exit 7")
			full := &failing{}
			cmd.Stdout = full
			if same {
				cmd.Stderr = full
			}
			kept := process.KeepTail(cmd)
			if same && cmd.Stdout != cmd.Stderr {
				t.Error("one writer for both has become two, which are called at the same time")
			}
			var ended *exec.ExitError
			if err := process.Run(t.Context(), cmd); !errors.As(err, &ended) || ended.ExitCode() != 7 {
				t.Fatalf("it ends with %v, want exit status 7", err)
			}
			if got := strings.Join(kept.LastLines(), ","); !strings.Contains(got, "out 3") || !strings.Contains(got, "err 3") {
				t.Errorf("kept is %q, want the lines of both", got)
			}
			if full.calls == 0 {
				t.Error("what was written is not handed on")
			}
		})
	}
}

// What the process writes to its two outputs is split anywhere. A value never loses its name to the other output.
func TestKeepTailHasALineForEachOutput(t *testing.T) {
	const secret = "hunter2hunter2"
	cmd := exec.Command("true")
	kept := process.KeepTail(cmd)
	for _, w := range []struct {
		to   io.Writer
		text string
	}{
		{cmd.Stdout, "token: "}, {cmd.Stderr, "E1127 it fails\n"}, {cmd.Stdout, secret + "\n"},
		{cmd.Stdout, "-----BEGIN PRIVATE KEY-----\n"}, {cmd.Stderr, "E1127 between\n"}, {cmd.Stdout, secret + "\n-----END"},
		{cmd.Stderr, "E1127 not ended"}, {cmd.Stdout, " PRIVATE KEY-----\nI1127 out not ended"},
	} {
		if _, err := io.WriteString(w.to, w.text); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{
		"E1127 it fails", "token: [cut]", "-----BEGIN [cut]", "E1127 between", "I1127 out not ended", "E1127 not ended",
	}
	if got := kept.LastLines(); !slices.Equal(got, want) {
		t.Errorf("kept is %q, want %q", got, want)
	}
}

// exec.Cmd closes its own pipes: they stay as they are.
func TestKeepTailLeavesFiles(t *testing.T) {
	cmd := exec.Command("echo", "to the pipe")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	kept := process.KeepTail(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(out)
	if err = errors.Join(err, cmd.Wait()); err != nil || string(text) != "to the pipe\n" || len(kept.LastLines()) != 0 {
		t.Errorf("the pipe gives %q, kept is %q, error %v", text, kept.LastLines(), err)
	}
}
