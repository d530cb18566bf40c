// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeagent

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

const bootFile = "/proc/sys/kernel/random/boot_id"

// BootID is the ID of this boot, by the kernel. Elsewhere than on Linux it is an error.
func BootID() (string, error) {
	id, err := os.ReadFile(bootFile)
	if err != nil {
		return "", fmt.Errorf("reading the boot ID: %w", err)
	}
	if text := strings.TrimSpace(string(id)); text != "" {
		return text, nil
	}
	return "", errors.New("reading the boot ID: " + bootFile + " is empty")
}
