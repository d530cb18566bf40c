// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/belayproject/belay/examples/internal/agent/report"
)

// SocketName is the name of the socket in the state directory.
const SocketName = "admin.sock"

// ErrNotRunning means that no agent serves the state directory.
var ErrNotRunning = errors.New("no agent is running on this state directory")

// Limits of one call.
const (
	callTimeout  = 15 * time.Second
	maxBodyBytes = 4 << 20
)

// An Agent is what the socket gives access to.
type Agent interface {
	// Status is the document of this moment.
	Status(ctx context.Context) (report.Document, error)
	// ForgetBad takes back the rejection of every version of the object with that UID; fs.ErrNotExist where there is none.
	ForgetBad(ctx context.Context, uid string) error
	// UseLocal leaves the assigned config for the local one.
	UseLocal(ctx context.Context, reason string) error
}

// What the socket serves.
const (
	pathStatus    = "/status"
	pathForgetBad = "/forget-bad"
	pathUseLocal  = "/use-local"
)

// request is the body of a call that changes something.
type request struct {
	UID    string `json:"uid,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// failure is the body of a call that failed.
type failure struct {
	Error  string `json:"error"`
	Absent bool   `json:"absent,omitempty"` // fs.ErrNotExist
}

// at calls f with a name of a file in dir that fits the address of a socket, however long dir's own name is.
func at(dir, name string, f func(path string) error) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return f(filepath.Join("/proc/self/fd", fmt.Sprint(d.Fd()), name))
}
