// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package checkup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/belayproject/belay/examples/internal/agent/doctor"
)

// unitTimeout bounds the question to the service manager.
const unitTimeout = 5 * time.Second

// lookAtUnit asks systemd about a unit.
func lookAtUnit(ctx context.Context, name string) *doctor.Unit {
	u := &doctor.Unit{Name: name}
	if _, err := os.Stat("/run/systemd/system"); err != nil {
		u.Err = errors.New("this machine is not run by systemd")
		return u
	}
	ctx, cancel := context.WithTimeout(ctx, unitTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, "systemctl", "show", "--property=LoadState,UnitFileState,Restart,StartLimitIntervalUSec", "--", name).Output()
	if err != nil {
		u.Err = fmt.Errorf("asking systemd: %w", err)
		return u
	}
	readUnit(u, string(out))
	return u
}

// readUnit takes the properties that systemctl shows.
func readUnit(u *doctor.Unit, out string) {
	set := map[string]string{}
	for line := range strings.Lines(out) {
		k, v, _ := strings.Cut(strings.TrimSpace(line), "=")
		set[k] = v
	}
	u.Loaded = set["LoadState"] == "loaded"
	u.Enabled = strings.HasPrefix(set["UnitFileState"], "enabled") || set["UnitFileState"] == "static"
	u.Restart = set["Restart"]
	u.Limited = set["StartLimitIntervalUSec"] != "0" && set["StartLimitIntervalUSec"] != "infinity" && set["StartLimitIntervalUSec"] != ""
}
