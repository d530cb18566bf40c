// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package ssh

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/belayproject/belay/machine/provider"
)

// Limits of what a host says.
const (
	maxAnswer = 4 << 20
	maxSteps  = 64
)

// A stepState is what is seen of a step on its host.
type stepState string

const (
	stepReady   stepState = "ready" // its files are there, and it does not run: it was never begun, or was cut off
	stepRunning stepState = "running"
	stepExited  stepState = "exited"
)

type stepStatus struct {
	state stepState
	code  int
}

// An answer is what a host has said.
type answer struct {
	boot     string
	raw      string // the claim as it is
	rec      *record
	used     bool // the token that was asked for is used up
	held     bool // processes of the machine are there
	data     bool // there is data, and no claim
	swapped  bool
	conflict bool
	failure  string // why nothing was done
	console  []byte
	steps    map[string]stepStatus
}

// parseAnswer reads what a host has written. It believes nothing that is not between the marks of this request, and nothing that is not whole.
func parseAnswer(out []byte, nonce, host string) (answer, error) {
	if !bytes.Contains(out, []byte("\nbelay "+nonce+" end\n")) {
		return answer{}, provider.Errorf(provider.Unavailable, "the answer of %d bytes is not whole", len(out))
	}
	a := answer{steps: map[string]stepStatus{}}
	var begun, ended bool
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, maxAnswer)
	for lines.Scan() {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		switch {
		case word == "belay" && rest == nonce+" begin" && !begun:
			begun = true
		case !begun: // a shell may greet
		case word == "belay" && rest == nonce+" end":
			ended = true
		case ended:
			return answer{}, provider.Errorf(provider.Internal, "the answer goes on after its end")
		default:
			if err := a.line(word, rest, host); err != nil {
				return answer{}, provider.Errorf(provider.Internal, "%w", err)
			}
		}
	}
	if err := lines.Err(); err != nil || !ended {
		return answer{}, provider.Errorf(provider.Internal, "the answer of %d bytes has no beginning, or a line that is too long", len(out))
	}
	if a.failure == "" && a.boot == "" {
		return answer{}, provider.Errorf(provider.Internal, "the host does not say which boot this is")
	}
	return a, nil
}

func (a *answer) line(word, rest, host string) (err error) {
	flags := map[string]*bool{"used": &a.used, "held": &a.held, "data": &a.data, "swapped": &a.swapped, "conflict": &a.conflict}
	if flag := flags[word]; flag != nil {
		*flag = true
		return nil
	}
	switch word {
	case "boot":
		a.boot = rest
	case "fail":
		a.failure = rest
	case "claim":
		err = a.claim(rest, host)
	case "step":
		err = a.step(rest)
	case "console":
		a.console, err = base64.StdEncoding.DecodeString(rest)
	default:
		err = fmt.Errorf("the answer has a line that begins with %.20q", word)
	}
	return err
}

func (a *answer) claim(encoded, host string) error {
	if a.rec != nil {
		return fmt.Errorf("the host has two claims")
	}
	data, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return fmt.Errorf("the claim is not base64: %w", err)
	}
	r, err := parse(data, host)
	if err != nil {
		return err
	}
	a.raw, a.rec = string(data), &r
	return nil
}

func (a *answer) step(rest string) error {
	fields := strings.Fields(rest)
	if len(fields) < 2 || len(fields) > 3 || len(a.steps) >= maxSteps || provider.CheckToken(fields[0]) != nil {
		return fmt.Errorf("the answer has a step of %d fields after %d steps: want an ID and a state", len(fields), len(a.steps))
	}
	s := stepStatus{state: stepState(fields[1])}
	switch s.state {
	case stepReady, stepRunning:
	case stepExited:
		if len(fields) < 3 {
			return fmt.Errorf("step %q has exited and has no exit code", fields[0])
		}
		code, err := strconv.ParseUint(fields[2], 10, 8)
		if err != nil {
			return fmt.Errorf("step %q has exit code %.20q: want 0 to 255", fields[0], fields[2])
		}
		s.code = int(code)
	default:
		return fmt.Errorf("step %q has state %.20q: want ready, running or exited", fields[0], fields[1])
	}
	a.steps[fields[0]] = s
	return nil
}

// errEnding means that an earlier step of a machine has been killed and its processes are still there: the kernel takes
// its time on a host under load, and where a process waits for a disk.
var errEnding = errors.New("the processes of an earlier step are still ending")

// err is what kept a host from doing what it was asked.
func (a answer) err() error {
	what, detail, _ := strings.Cut(a.failure, " ")
	switch what {
	case "":
		return nil
	case "busy":
		if detail == "processes" || detail == "step" {
			return provider.Errorf(provider.Unavailable, "%w", errEnding)
		}
		return provider.Errorf(provider.Unavailable, "it is busy with something else (%.20q)", detail)
	case "lacks":
		return provider.Errorf(provider.Internal, "it has no command %.20q", detail)
	case "store":
		return provider.Errorf(provider.Internal, "it can't write (%.20q): is the disk full, and has the user the right?", detail)
	}
	return provider.Errorf(provider.Internal, "it has failed in a way that is not known (%.20q)", what)
}
