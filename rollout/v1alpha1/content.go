// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"
	"fmt"
)

// Content is what a revision brings, in the parts that [github.com/belayproject/belay/rollout.Diff] compares: so two entries of a history say what has
// changed between them. Config is the data of the ConfigMap that configMapRef names, by whoever has read it; nil if there is none. Part "spec" is what else
// is said of the revision, "opaque" its opaque text, and "config/" with a key that of the config.
func (s *RevisionSpec) Content(config map[string]string) (map[string]string, error) {
	said := *s
	said.Digest, said.Opaque, said.ConfigMapRef = "", "", nil
	text, err := json.Marshal(said)
	if err != nil {
		return nil, fmt.Errorf("the content of a revision: %w", err)
	}
	parts := map[string]string{"spec": string(text)}
	if s.Opaque != "" {
		parts["opaque"] = s.Opaque
	}
	for key, value := range config {
		parts["config/"+key] = value
	}
	return parts, nil
}
