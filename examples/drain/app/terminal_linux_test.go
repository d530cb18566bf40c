// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/belayproject/belay/examples/internal/e2e"
	"github.com/belayproject/belay/internal/testproc"
)

// terminal opens a pseudo-terminal: what is written to the second file is read from the first.
func terminal(t *testing.T) (screen, tty *os.File) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("there are no pseudo-terminals here: %v", err)
	}
	t.Cleanup(func() { _ = screen.Close() })
	fd := int(screen.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 60})
	}
	if err == nil {
		tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	return screen, tty
}

// R-DR-03: on a terminal the pods that don't leave are shown and drawn over, and nothing is wider than the terminal.
func TestTerminalIsDrawnOver(t *testing.T) {
	w := newWorld(t)
	n1 := w.node(t, "1")
	w.bare(t, "tool", n1)
	screen, tty := terminal(t)
	p := &process{out: &testproc.Buffer{}, errs: &testproc.Buffer{}, done: make(chan struct{})}
	p.cmd = exec.Command(programs.Path(t, "github.com/belayproject/belay/examples/drain"), n1, "--kubeconfig="+w.kubeconfig)
	p.cmd.Env = append(os.Environ(), "TERM=xterm")
	p.cmd.Stdout, p.cmd.Stderr = tty, p.errs
	p.begin(t)
	if err := tty.Close(); err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		_, _ = io.Copy(p.out, screen) // ends with an error when the command has closed the other side
		close(read)
	}()
	p.until(t, "Unmanaged")
	e2e.Eventually(t, settled, "it is drawn again as time goes on", func() error {
		if n := strings.Count(p.out.String(), "\x1b["); n < 6 {
			return fmt.Errorf("drawn %d times", n)
		}
		return nil
	})
	p.interrupt(t)
	p.ends(t, exitInterrupted)
	<-read
	p.says(t, "TO LEAVE", "Interrupted. Given back as found: "+n1)
	drawn, _, _ := strings.Cut(p.out.String(), "Interrupted: no further")
	for _, line := range strings.Split(drawn, "\r\n") {
		if line = line[strings.LastIndex(line, "\x1b[J")+1:]; len([]rune(strings.TrimPrefix(line, "[J"))) > 60 {
			t.Errorf("a line of %d characters on a terminal of 60: %q", len([]rune(line)), line)
		}
	}
	w.asFound(t, n1, false)
}
