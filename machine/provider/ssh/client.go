// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package ssh

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/belayproject/belay/machine/provider"
)

// A client talks to hosts, a few at a time, through the system's ssh.
type client struct {
	options  Options
	bootFile func(Host) string
	// For tests: what happens before and after each exchange.
	at func(string)

	slots chan struct{} // one for each exchange
	mu    sync.Mutex
	hosts map[string]chan struct{} // and one for each with a host
}

// How many exchanges there are at a time, and with one host: sshd refuses more than ten over one connection.
const (
	maxExchanges = 32
	maxWithHost  = 4
)

// admit waits until there are fewer exchanges. What it returns ends this one.
func (c *client) admit(ctx context.Context, host string) (func(), error) {
	c.mu.Lock()
	own := c.hosts[host]
	if own == nil {
		own = make(chan struct{}, maxWithHost)
		c.hosts[host] = own
	}
	c.mu.Unlock()
	for i, slot := range []chan struct{}{own, c.slots} {
		select {
		case slot <- struct{}{}:
		case <-ctx.Done():
			if i > 0 {
				<-own
			}
			return nil, ctx.Err()
		}
	}
	return func() { <-c.slots; <-own }, nil
}

// exitSSH is what ssh exits with when it could not run the command.
const exitSSH = 255

// ask has one exchange with a host. Its errors name the host and hold nothing that the host has said.
func (c *client) ask(ctx context.Context, h Host, r request) (answer, error) {
	end, err := c.admit(ctx, h.Name)
	if err != nil {
		return answer{}, wrap(fmt.Sprintf("host %q", h.Name), err)
	}
	defer end()
	ctx, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	nonce := strings.ToLower(rand.Text())
	if r.swap != nil {
		c.at("before " + h.Name)
	}
	out, err := c.run(ctx, h, r.script(nonce, h.Directory, c.bootFile(h)), "\nbelay "+nonce+" end\n")
	if r.swap != nil {
		c.at("after " + h.Name)
	}
	var a answer
	if err == nil {
		a, err = parseAnswer(out, nonce, h.Name)
	}
	if err == nil {
		err = a.err()
	}
	return a, wrap(fmt.Sprintf("host %q", h.Name), err)
}

// arguments of the client. Of an option that is given twice ssh takes the first.
func (c *client) arguments(h Host) []string {
	args := []string{"-T", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes"}
	args = append(args, c.options.Args...)
	args = append(args, "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3")
	if c.options.KnownHosts != "" {
		args = append(args, "-o", "UserKnownHostsFile="+c.options.KnownHosts)
	}
	if c.options.ControlDir != "" {
		args = append(args, "-o", "ControlMaster=auto", "-o", "ControlPersist=60", "-o", "ControlPath="+c.options.ControlDir+"/%C")
	}
	if h.Port != 0 {
		args = append(args, "-p", strconv.Itoa(h.Port))
	}
	if h.User != "" {
		args = append(args, "-l", h.User)
	}
	return append(args, "--", h.Address, c.options.Shell)
}

// run sends a script to a host and returns what came back until the mark that ends it. A connection that is kept open may keep the output open too, so
// that its end is not waited for.
func (c *client) run(ctx context.Context, h Host, script, mark string) ([]byte, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, provider.Errorf(provider.Unavailable, "pipe: %w", err)
	}
	defer func() { _ = r.Close() }() // it was read
	cmd := exec.CommandContext(ctx, c.options.Command, c.arguments(h)...)
	stderr := &bounded{limit: 64 << 10}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(script), w, stderr
	cmd.WaitDelay = 500 * time.Millisecond // for what else is kept open
	err = cmd.Start()
	_ = w.Close() // the process has it
	if err != nil {
		return nil, provider.Errorf(provider.Internal, "running %q: %w", c.options.Command, err)
	}
	back := make(chan []byte, 1)
	go func() { back <- readTo(r, mark) }()
	var out []byte
	select {
	case out = <-back:
	case <-ctx.Done():
		_ = r.Close() // ends the reading
		out = <-back
	}
	return out, c.ended(ctx, cmd.Wait(), stderr)
}

// readTo reads up to a mark, the end, or more than is ever right.
func readTo(r io.Reader, mark string) []byte {
	var out []byte
	for buf := make([]byte, 32<<10); len(out) <= maxAnswer && !bytes.HasSuffix(out, []byte(mark)); {
		n, err := r.Read(buf)
		out = append(out, buf[:n]...)
		if err != nil {
			break
		}
	}
	return out
}

// ended says what the end of ssh means.
func (c *client) ended(ctx context.Context, err error, stderr *bounded) error {
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return provider.Errorf(provider.Unavailable, "it did not answer: %w", ctx.Err())
	case err == nil, errors.Is(err, exec.ErrWaitDelay):
		return nil
	case !errors.As(err, &exit):
		return provider.Errorf(provider.Unavailable, "running %q: %w", c.options.Command, err)
	case exit.ExitCode() == exitSSH:
		return refusal(stderr.String())
	case exit.ExitCode() < 0:
		return provider.Errorf(provider.Unavailable, "%q was ended: %v", c.options.Command, exit)
	}
	return provider.Errorf(provider.Internal, "%q has exited with code %d: is %q a shell there?", c.options.Command, exit.ExitCode(), c.options.Shell)
}

// refusal says why ssh has failed, in words that are known: what else it prints may come from the host.
func refusal(stderr string) error {
	for _, known := range []struct {
		text  string
		class provider.Class
	}{
		{"Host key verification failed", provider.Unauthorized},
		{"REMOTE HOST IDENTIFICATION HAS CHANGED", provider.Unauthorized},
		{"no matching host key type", provider.Unauthorized},
		{"Permission denied", provider.Unauthorized},
		{"Too many authentication failures", provider.Unauthorized},
		{"Could not resolve hostname", provider.Unavailable},
		{"Connection refused", provider.Unavailable},
		{"Connection timed out", provider.Unavailable},
		{"No route to host", provider.Unavailable},
		{"Network is unreachable", provider.Unavailable},
		{"Connection reset", provider.Unavailable},
		{"Connection closed", provider.Unavailable},
		{"Broken pipe", provider.Unavailable},
	} {
		if strings.Contains(stderr, known.text) {
			return provider.Errorf(known.class, "ssh says: %s", known.text)
		}
	}
	return provider.Errorf(provider.Unavailable, "ssh has exited with code %d", exitSSH)
}

// bounded keeps what is written up to a limit and drops the rest.
type bounded struct {
	bytes.Buffer
	limit int
}

func (b *bounded) Write(p []byte) (int, error) {
	_, _ = b.Buffer.Write(p[:min(len(p), max(0, b.limit-b.Len()))]) // a buffer takes all
	return len(p), nil
}

func defaults(o Options) Options {
	o.Command = cmp.Or(o.Command, "ssh")
	o.Shell = cmp.Or(o.Shell, "sh -s")
	if o.Timeout <= 0 {
		o.Timeout = 30 * time.Second
	}
	return o
}
