// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package skew

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// errorTail is how much of a failed command's output an error holds, in bytes.
const errorTail = 4 << 10

// goCommand runs the go command in dir, outside of any workspace, and returns what it printed on its standard output.
func goCommand(ctx context.Context, dir string, env []string, args ...string) (string, error) {
	return runCommand(ctx, dir, env, "go", args...)
}

// runCommand runs a program as goCommand runs go.
func runCommand(ctx context.Context, dir string, env []string, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env = dir, append(append(os.Environ(), "GOWORK=off"), env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		tail := slices.Concat(stdout.Bytes(), stderr.Bytes())
		tail = tail[max(0, len(tail)-errorTail):]
		call := filepath.Base(program) + " " + strings.Join(args, " ")
		return stdout.String(), fmt.Errorf("%s: %w\n%s", call, err, tail)
	}
	return stdout.String(), nil
}

// Table writes a Markdown table whose columns are aligned.
func Table(rows [][]string) string {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 3)
			}
			widths[i] = max(widths[i], len(cell))
		}
	}
	var b strings.Builder
	for n, row := range rows {
		for i, cell := range row {
			fmt.Fprintf(&b, "| %-*s ", widths[i], cell)
		}
		b.WriteString("|\n")
		if n == 0 {
			for _, width := range widths {
				b.WriteString("|" + strings.Repeat("-", width+2))
			}
			b.WriteString("|\n")
		}
	}
	return b.String()
}
