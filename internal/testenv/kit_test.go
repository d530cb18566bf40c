// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/belayproject/belay/internal/testproc"
)

// eventually asks until check returns nil and fails the test with its last error otherwise.
func eventually(t *testing.T, within time.Duration, what string, check func() error) {
	t.Helper()
	if err := testproc.Poll(within, check); err != nil {
		t.Fatalf("waiting %s for %s: %v", within, what, err)
	}
}

// setReady writes a Ready condition to a Node's status.
func setReady(ctx context.Context, nodes typedcorev1.NodeInterface, name string) error {
	patch := `{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`
	_, err := nodes.Patch(ctx, name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
	return err
}

// owned is what a control plane consists of outside of its owner.
type owned struct {
	PIDs []int
	Dir  string
}

// leftovers returns an error that names what of o is still there.
func leftovers(o owned) error {
	var errs []error
	for _, pid := range o.PIDs {
		errs = append(errs, testproc.Ended(pid))
	}
	if _, err := os.Stat(o.Dir); !errors.Is(err, fs.ErrNotExist) {
		errs = append(errs, fmt.Errorf("directory %q exists (%w)", o.Dir, err))
	}
	return errors.Join(errs...)
}

func decodeOwned(t *testing.T, line []byte) owned {
	t.Helper()
	var o owned
	if err := json.Unmarshal(line, &o); err != nil {
		t.Fatalf("decoding what the owner printed: %v: %q", err, line)
	}
	return o
}

// listeners returns the local addresses, in the kernel's hexadecimal form, on which a process listens.
func listeners(t *testing.T, pid int) []string {
	t.Helper()
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	fds, err := os.ReadDir(filepath.Join(proc, "fd"))
	if err != nil {
		t.Fatal(err)
	}
	inodes := map[string]bool{}
	for _, fd := range fds {
		target, _ := os.Readlink(filepath.Join(proc, "fd", fd.Name()))
		if inode, ok := strings.CutPrefix(target, "socket:["); ok {
			inodes[strings.TrimSuffix(inode, "]")] = true
		}
	}
	var addresses []string
	for _, table := range []string{"tcp", "tcp6"} {
		data, err := os.ReadFile(filepath.Join(proc, "net", table))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			const listening = "0A"
			fields := strings.Fields(line)
			if len(fields) > 9 && fields[3] == listening && inodes[fields[9]] {
				addresses = append(addresses, fields[1])
			}
		}
	}
	return addresses
}
