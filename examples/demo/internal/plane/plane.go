// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package plane

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/belayproject/belay/examples/internal/proc"
)

const (
	// grace is how long the control plane may take for an order, closeGrace to stop and remove everything.
	grace, closeGrace = 2 * time.Minute, 2 * time.Minute
	// buildTime is how long it may take where it has to build a program first.
	buildTime = 20 * time.Minute
)

// ErrUnsupported means that the control plane knows the order and the machine can't do it.
var ErrUnsupported = errors.New("this machine can't do it")

// A Plane is a control plane that was started. Its methods must not be called at the same time.
type Plane struct {
	kubeconfig string
	process    *proc.Process
	orders     io.WriteCloser
	answers    chan string // closed when the command ends its output
}

// Start runs the command, whose arguments are separated by spaces, and returns when there is a kubeconfig:
// [Plane.StartServer] then waits for the API server. What the command says while it gets ready, such as the progress of
// a build, goes to progress.
func Start(ctx context.Context, command string, progress io.Writer) (*Plane, error) {
	argv := strings.Fields(command)
	if len(argv) == 0 {
		return nil, fmt.Errorf("starting the control plane: the command is empty")
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stderr = progress
	cmd.WaitDelay = 30 * time.Second // for what it leaves running, with its output open
	orders, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("starting the control plane: %w", err)
	}
	read, write := io.Pipe() // not StdoutPipe, which must not be read while somebody waits for the command
	cmd.Stdout = write
	p := &Plane{orders: orders, answers: make(chan string, 16)}
	go p.listen(read)
	if p.process, err = proc.Start("the control plane", cmd); err != nil {
		return nil, errors.Join(err, write.Close())
	}
	go func() {
		<-p.process.Done()
		_ = write.Close()
	}()
	if p.kubeconfig, err = p.answer(ctx, filepath.IsAbs); err != nil {
		return nil, fmt.Errorf("waiting for the control plane: %w", joinStop(err, p.Close(context.WithoutCancel(ctx))))
	}
	return p, nil
}

// joinStop adds what went wrong in stopping to the error that led to it.
func joinStop(err, stop error) error {
	if stop == nil {
		return err
	}
	return fmt.Errorf("%w; %w", err, stop)
}

// listen hands on the lines that the command prints.
func (p *Plane) listen(out io.Reader) {
	defer close(p.answers)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		p.answers <- strings.TrimSpace(lines.Text())
	}
}

// answer waits for a line that fits.
func (p *Plane) answer(ctx context.Context, fits func(string) bool) (string, error) {
	for {
		select {
		case <-ctx.Done():
			return "", context.Cause(ctx)
		case line, ok := <-p.answers:
			if !ok {
				<-p.process.Done()
				return "", p.process.EndError()
			}
			if fits(line) {
				return line, nil
			}
		}
	}
}

// Kubeconfig is the path of the kubeconfig of an administrator.
func (p *Plane) Kubeconfig() string { return p.kubeconfig }

// StopServer stops the API server. It returns when that is done.
func (p *Plane) StopServer(ctx context.Context) error {
	_, err := p.order(ctx, "stop", "stopped", grace)
	return err
}

// StartServer returns when the API server is ready: for the first time, or after StopServer. It may have to be built.
func (p *Plane) StartServer(ctx context.Context) error {
	_, err := p.order(ctx, "start", "started", buildTime)
	return err
}

// Kubelet readies this machine for a real kubelet that is the named node and serves healthz at the address, and returns its command
// line, to which a file for --config is to be added. The error is [ErrUnsupported] where the machine can't run one.
func (p *Plane) Kubelet(ctx context.Context, name, address string) ([]string, error) {
	answer, err := p.order(ctx, "kubelet "+name+" "+address, "kubelet", buildTime)
	if err != nil {
		return nil, err
	}
	var argv []string
	if err := json.Unmarshal([]byte(answer), &argv); err != nil || len(argv) == 0 {
		return nil, fmt.Errorf("asking for a kubelet: got the answer %q, want a command line", answer)
	}
	return argv, nil
}

// order gives an order and returns what follows the word in its answer.
func (p *Plane) order(ctx context.Context, order, word string, timeout time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if _, err := io.WriteString(p.orders, order+"\n"); err != nil {
		return "", fmt.Errorf("giving the control plane the order %q: %w", order, err)
	}
	const unsupported = "unsupported"
	answer, err := p.answer(ctx, func(line string) bool {
		first, _, _ := strings.Cut(line, " ")
		return first == word || first == unsupported
	})
	if err != nil {
		return "", fmt.Errorf("giving the control plane the order %q: %w", order, err)
	}
	first, rest, _ := strings.Cut(answer, " ")
	if first == unsupported {
		return "", fmt.Errorf("%w: %s", ErrUnsupported, rest)
	}
	return rest, nil
}

// Ended returns nil while the control plane runs.
func (p *Plane) Ended() error { return p.process.EndError() }

// Close stops the control plane and waits until all of it is gone.
func (p *Plane) Close(ctx context.Context) error {
	go func() {
		for range p.answers { // nobody else reads any more
		}
	}()
	return p.process.Stop(ctx, closeGrace)
}
