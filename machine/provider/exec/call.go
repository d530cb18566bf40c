// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	osexec "os/exec"
	"strings"
	"time"

	"github.com/belayproject/belay/internal/process"
	"github.com/belayproject/belay/machine/provider"
)

const (
	// maxStderr is how much of what the program says in its last moments is kept, and saidStderr how much of it an error says.
	maxStderr  = 16 << 10
	saidStderr = 1000
	// drained is how long output is waited for that somebody else holds open.
	drained = 300 * time.Millisecond
)

// errTooMuch is why a program was killed.
var errTooMuch = errors.New("too much output")

// call runs the program once. The error has a class, and neither a name nor a secret.
func (p *program) call(ctx context.Context, verb string, request any, secret ...map[string][]byte) (reply, error) {
	if err := ctx.Err(); err != nil {
		return reply{}, provider.Errorf(provider.Unavailable, "the program was not called: %w", err)
	}
	in, err := json.Marshal(request)
	if err != nil {
		return reply{}, provider.Errorf(provider.InvalidConfig, "the request can't be written as JSON: %w", err)
	}
	limited, stop := context.WithTimeout(ctx, p.o.Timeout)
	defer stop()
	limited, cancel := context.WithCancelCause(limited)
	defer cancel(nil)
	stdout := &capped{limit: p.o.MaxOutput, over: func() { cancel(errTooMuch) }}
	stderr := &tail{limit: maxStderr}
	cmd := osexec.Command(p.o.Path, append(p.o.Args[:len(p.o.Args):len(p.o.Args)], verb)...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = p.o.Env, bytes.NewReader(in), stdout, stderr, drained
	err = process.Run(limited, cmd)
	switch {
	case ctx.Err() != nil && err != nil:
		return reply{}, provider.Errorf(provider.Unavailable, "the program was killed: %w", ctx.Err())
	case errors.Is(context.Cause(limited), errTooMuch):
		return reply{}, provider.Errorf(provider.Internal, "the program was killed: it has written more than %d bytes", p.o.MaxOutput)
	case limited.Err() != nil && err != nil:
		return reply{}, provider.Errorf(provider.Unavailable, "the program was killed: it has taken longer than %s", p.o.Timeout)
	case cmd.ProcessState == nil:
		return reply{}, provider.Errorf(provider.Unavailable, "the program can't be started: %w", err)
	}
	return judge(cmd.ProcessState.ExitCode(), stdout.kept.Bytes(), stderr, secretsOf(secret))
}

// judge makes of what the program has said and how it has ended a reply or an error.
func judge(code int, out []byte, stderr *tail, hide secrets) (reply, error) {
	r, err := parse(out)
	switch {
	case err == nil && r.Error != nil:
		return reply{}, r.Error.err(hide)
	case code != 0:
		err = fmt.Errorf("the program has ended with exit code %d", code)
	case err == nil:
		r.scrub(hide)
		return r, nil
	}
	if said := stderr.say(hide); said != "" {
		return reply{}, provider.Errorf(provider.Internal, "%w; it says: %s", err, said)
	}
	return reply{}, provider.Errorf(provider.Internal, "%w", err)
}

// capped keeps what is written up to a limit, and takes the rest. It has no ReadFrom, which io.Copy would prefer.
type capped struct {
	limit int
	over  func()
	kept  bytes.Buffer
}

// Write never fails.
func (c *capped) Write(p []byte) (int, error) {
	room := min(len(p), c.limit-c.kept.Len())
	c.kept.Write(p[:room])
	if room < len(p) {
		c.over()
	}
	return len(p), nil
}

// tail keeps the end of what is written.
type tail struct {
	limit int
	kept  []byte
	cut   bool
}

// Write never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	if extra := len(t.kept) - t.limit; extra > 0 {
		t.kept = append([]byte(nil), t.kept[extra:]...)
		t.cut = true
	}
	return len(p), nil
}

// say is the end of it for an error: without secrets, in one line. Secrets are taken out before it is made shorter, so that none is cut in two.
func (t *tail) say(hide secrets) string {
	text := string(t.kept)
	if t.cut {
		text = hide.scrubTail(text)
	} else {
		text = hide.scrub(text)
	}
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " ")
	if len(text) > saidStderr {
		text = "…" + strings.ToValidUTF8(text[len(text)-saidStderr:], "")
	}
	return text
}
