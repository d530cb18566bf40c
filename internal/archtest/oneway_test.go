// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import "testing"

// TestSecondWaysCatch shows each shared room code that does its work elsewhere, and code close to it that does not.
func TestSecondWaysCatch(t *testing.T) {
	const (
		cacheImport = `import "k8s.io/client-go/tools/cache"`
		waitImport  = `import "k8s.io/apimachinery/pkg/util/wait"`
		fn          = "\n\nfunc f() {\n\t"
		end         = "\n}\n"
		failing     = "select {\n\tcase <-ctx.Done(): t.Fatal()\n\tcase <-tick.C:\n\t}"
	)
	for _, c := range []struct{ name, path, text, ratchet, want string }{
		{"strict decoder", "lkg/a.go", `import "encoding/json"` + fn + "d.DisallowUnknownFields()" + end, "own-decoder",
			"a.go:9: decodes strictly by encoding/json"},
		{"strict decoder in a test", "lkg/a_test.go", `import "encoding/json"` + fn + "d.DisallowUnknownFields()" + end,
			"own-decoder", "use internal/strictjson"},
		{"strict decoder in its room", "internal/strictjson/a.go", fn + "d.DisallowUnknownFields()" + end,
			"own-decoder", ""},
		{"another decoder", "lkg/a.go", `import "encoding/json"` + fn + "json.NewDecoder(r).Decode(&v)" + end,
			"own-decoder", ""},

		{"group kill", "lkg/a.go", `import "syscall"` + fn + "syscall.Kill(-pid, 9)" + end,
			"own-group", "signals a process group"},
		{"group kill by unix", "lkg/a_test.go", `import u "golang.org/x/sys/unix"` + fn + "u.Kill(-c.pid, 9)" + end,
			"own-group", "use internal/process"},
		{"kill of one", "lkg/a.go", `import "syscall"` + fn + "syscall.Kill(pid, 9); syscall.Kill(-1, 9)" + end,
			"own-group", ""},
		{"own group", "lkg/a.go", `import "syscall"` + fn + "c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}" + end,
			"own-group", "starts a process group"},
		{"own group later", "lkg/a.go", fn + "c.SysProcAttr.Setpgid = true" + end, "own-group", "starts a process group"},
		{"own session", "lkg/a.go", `import "syscall"` + fn + "c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}" + end,
			"own-group", ""},

		{"reflector", "drain/a.go", cacheImport + fn + "cache.NewReflector(lw, o, s, 0)" + end,
			"own-watch", "calls cache.NewReflector"},
		{"informer", "drain/a_test.go", cacheImport + fn + "cache.NewSharedIndexInformer(lw, o, 0, nil)" + end, "own-watch",
			"use internal/watch"},
		{"list and watch", "drain/a.go", cacheImport + fn + "_ = &cache.ListWatch{}" + end,
			"own-watch", "has a cache.ListWatch"},
		{"another informer", "drain/a.go", `import "a.b/cache"` + fn + "cache.NewSharedIndexInformer()" + end,
			"own-watch", ""},
		{"indexer", "drain/a.go", cacheImport + fn + "cache.NewIndexer(nil, nil)" + end, "own-watch", ""},

		{"apimachinery's backoff", "drain/a.go", waitImport + fn + "_ = wait.Backoff{Steps: 3}" + end,
			"own-backoff", "has a wait.Backoff"},
		{"apimachinery's jitter", "drain/a.go", waitImport + fn + "wait.Jitter(d, 1)" + end,
			"own-backoff", "calls wait.Jitter"},
		{"doubled", "lkg/a.go", fn + "for d := x; ; d = min(2*d, most) {}" + end, "own-backoff", "use internal/backoff"},
		{"doubled field", "lkg/a.go", fn + "l.d = min(most, l.d*2)" + end, "own-backoff", "doubles a delay"},
		{"doubled of another", "lkg/a.go", fn + "d = min(2*e, most)" + end, "own-backoff", ""},
		{"drawn", "lkg/a.go", `import ("math/rand/v2"; "time")` + fn + "_ = time.Duration(rand.Float64()*float64(d))" + end,
			"own-backoff", "draws a delay"},
		{"drawn in a test", "lkg/a_test.go",
			`import ("math/rand/v2"; "time")` + fn + "_ = time.Duration(rand.IntN(9))" + end,
			"own-backoff", ""},

		{"apimachinery's poll", "drain/a.go", waitImport + fn + "wait.PollUntilContextCancel(ctx, d, true, f)" + end,
			"own-poll", "calls wait.PollUntilContextCancel"},
		{"ticker", "lkg/a_test.go", `import "time"` + fn + "for !is() {\n\t" + failing + "\n\t}" + end,
			"own-poll", "use testproc.Poll"},
		{"bare ticker", "lkg/a_test.go", `import "time"` + fn + "for !is() { <-tick.C }" + end,
			"own-poll", "polls in a loop"},
		{"range", "lkg/a_test.go", `import "time"` + fn + "for range time.Tick(d) { is() }" + end,
			"own-poll", "polls in a loop"},
		{"clock", "lkg/a_test.go", `import "time"` + fn + "for time.Now().Before(end) { <-time.After(d) }" + end,
			"own-poll", "polls in a loop"},
		{"in a kit", "lkg/lkgtest/a.go", `import ("testing"; "time")` + fn + "for !is() {\n\t" + failing + "\n\t}" + end,
			"own-poll", "polls in a loop"},
		{"in a library", "lkg/a.go", `import "time"` + fn + "for !is() {\n\t" + failing + "\n\t}" + end, "own-poll", ""},
		{"virtual time", "lkg/a_test.go", `import "time"` + fn + "for range 9 { <-time.After(d) }" + end, "own-poll", ""},
		{"a wake-up", "lkg/a_test.go",
			`import "time"` + fn + "for !is() {\n\tselect {\n\tcase <-wake:\n\tcase <-time.After(d):\n\t}\n\t}" + end,
			"own-poll", ""},
		{"a limit", "lkg/a_test.go",
			`import "time"` + fn + "for !is() {\n\tselect {\n\tcase <-heard:\n\tcase <-time.After(d): t.Fatal()\n\t}\n\t}" + end,
			"own-poll", ""},
		{"no loop", "lkg/a_test.go", `import "time"` + fn + failing + end, "own-poll", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := tree(t, c.path, "package p\n\n"+c.text).Files
			wantOnly(t, SecondWays(c.ratchet, files), c.want)
		})
	}
}

// TestRatchetsNameTheRoom shows that a second way that is new is told with its place and the room to use instead.
func TestRatchetsNameTheRoom(t *testing.T) {
	tree := tree(t, "lkg/a.go", "package lkg\n\nfunc f() { d.DisallowUnknownFields() }\n")
	have := Measure(tree)
	if have["lkg"]["own-decoder"] != 1 {
		t.Fatalf("got %v, want one decoder", have)
	}
	wantOnly(t, RatchetsHold(have, figures(t, "lkg one-word=1")), "lkg: own-decoder: 1, at most 0")
	wantOnly(t, GrownWays(tree, have, nil), "lkg/a.go:6: decodes strictly by encoding/json")
	wantOnly(t, GrownWays(tree, have, have), "")
}
