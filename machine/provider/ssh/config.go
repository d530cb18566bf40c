// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package ssh

import (
	"fmt"
	"strings"

	"github.com/belayproject/belay/machine/provider"
)

// apiVersion and kindName are those of a Config.
const (
	apiVersion = "ssh.belay.dev/v1"
	kindName   = "SSHConfig"
)

// Config is what a machine of this provider is made of: which hosts will do, and what to run on them.
//
// Each script is run by sh, detached from the connection, and may be run again when it was cut off: it has to take what it finds. The environment has
// BELAY_TOKEN, BELAY_PROVIDER_ID, BELAY_HOST, BELAY_DATA (the directory that is kept by Retain and wiped by Destroy), BELAY_STEP, BELAY_CLUSTER,
// BELAY_NAMESPACE, BELAY_NAME, BELAY_UID, BELAY_INCARNATION, BELAY_FROM (the token that was adopted from), BELAY_ENDPOINT, BELAY_KUBELET_VERSION,
// BELAY_RUNTIME_NAME and BELAY_RUNTIME_VERSION. Standard input is a JSON object with token, providerID, owner, desired and, for bootstrap and update,
// endpoint and bootstrap. BELAY_JOIN is a directory then, with a file for each key of the bootstrap Secret. It is removed when the script ends.
//
// Exit code 0 is success, 69 and 75 are for trouble that passes, 77 for missing rights, 64 and 78 for a config that is wrong.
type Config struct {
	provider.Kind
	// Selector has labels that the host must have. Without it any host will do.
	Selector map[string]string `json:"selector,omitempty"`
	// Bootstrap makes the host a Node. What it starts inherits descriptor 8, which says that the machine runs; a service manager's processes don't.
	Bootstrap string `json:"bootstrap"`
	// Update changes the machine to what is desired now. Without it a machine is replaced.
	Update string `json:"update,omitempty"`
	// Start is run after a reboot. Without it the host starts the machine by itself, and one that was stopped can't be rebooted.
	Start string `json:"start,omitempty"`
	// Stop ends the machine, and keeps the host from starting it again.
	Stop string `json:"stop"`
	// Stopped is run after Stop and exits with 0 when nothing of the machine runs any more.
	Stopped string `json:"stopped,omitempty"`
	// Cleanup is run by Destroy, before BELAY_DATA is wiped. Nothing else is ever wiped.
	Cleanup string `json:"cleanup,omitempty"`
	// RebootCommand restarts the host. Without it there is no Reboot.
	RebootCommand string `json:"rebootCommand,omitempty"`
	// TimeoutSeconds is how long each script may take: 1 to 86400; 0 is 1800.
	TimeoutSeconds int64 `json:"timeoutSeconds,omitempty"`
}

// Limits of a config.
const (
	maxScripts = 64 << 10 // bytes of all scripts together
	maxSeconds = 86400
)

// Default fills in what was left open.
func (c *Config) Default() {
	if c.TimeoutSeconds == 0 {
		c.TimeoutSeconds = 1800
	}
}

// Validate returns an error that names the first field that can't be. Defaults are filled in before.
func (c *Config) Validate() error {
	size := 0
	for _, s := range []struct{ name, text string }{
		{"bootstrap", c.Bootstrap}, {"update", c.Update}, {"start", c.Start}, {"stop", c.Stop}, {"stopped", c.Stopped}, {"cleanup", c.Cleanup},
		{"rebootCommand", c.RebootCommand},
	} {
		if strings.ContainsRune(s.text, 0) {
			return fmt.Errorf("%s: it has a zero byte", s.name)
		}
		size += len(s.text)
	}
	switch {
	case strings.TrimSpace(c.Bootstrap) == "":
		return fmt.Errorf("bootstrap: there is no script")
	case strings.TrimSpace(c.Stop) == "":
		return fmt.Errorf("stop: there is no script: a machine that can't be stopped can't be deleted")
	case size > maxScripts:
		return fmt.Errorf("the scripts have %d bytes: want at most %d", size, maxScripts)
	case c.TimeoutSeconds < 1 || c.TimeoutSeconds > maxSeconds:
		return fmt.Errorf("timeoutSeconds: %d is not between 1 and %d", c.TimeoutSeconds, maxSeconds)
	}
	return nil
}
