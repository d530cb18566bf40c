// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeagent

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strconv"

	"github.com/belayproject/belay/internal/compat"
	"github.com/belayproject/belay/internal/process"
)

// maxOutput bounds what a hook may say, in bytes.
const maxOutput = 64 << 10

// call runs one hook to its end, and returns what it wrote.
func (h *hooks) call(ctx context.Context, verb string, argv []string, a Attempt, more ...string) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, &hookError{Verb: verb, Code: -1, Err: err}
	}
	out := &bounded{}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(slices.Clone(h.e.Env), "BELAY_VERB="+verb, "BELAY_ATTEMPT="+a.Key, "BELAY_REVISION="+a.Revision.Name,
		"BELAY_DIGEST="+a.Revision.Digest, "BELAY_REVERT="+strconv.FormatBool(a.Revert))
	cmd.Env = append(cmd.Env, more...)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = h.e.Dir, out, h.e.Stderr, drained
	process.DieWithParent(cmd)
	err := process.Run(ctx, cmd)
	switch {
	case ctx.Err() != nil && err != nil:
		return nil, &hookError{Verb: verb, Code: -1, Err: fmt.Errorf("it was killed: %w", ctx.Err())}
	case out.over:
		return nil, &hookError{Verb: verb, Code: codeOf(cmd), Err: fmt.Errorf("it has written more than %d bytes", maxOutput)}
	case err == nil:
		return out.kept.Bytes(), nil
	}
	failed := &hookError{Verb: verb, Code: codeOf(cmd)}
	if _, exited := compat.AsType[*exec.ExitError](err); !exited || failed.Code < 0 {
		failed.Err = err
	}
	var said why
	if json.Unmarshal(out.kept.Bytes(), &said) == nil { // what it says besides is nobody's
		said = said.brief()
		failed.Reason, failed.Message = said.Reason, said.Message
	}
	return nil, failed
}

func codeOf(cmd *exec.Cmd) int {
	if cmd.ProcessState == nil {
		return -1
	}
	return cmd.ProcessState.ExitCode()
}

// bounded keeps what is written up to maxOutput, and takes the rest. It has no ReadFrom, which io.Copy would prefer.
type bounded struct {
	kept bytes.Buffer
	over bool
}

// Write never fails, so that a command that writes too much is not held up.
func (b *bounded) Write(p []byte) (int, error) {
	room := min(len(p), maxOutput-b.kept.Len())
	b.over = b.over || room < len(p)
	b.kept.Write(p[:room])
	return len(p), nil
}
