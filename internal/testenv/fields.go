// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FieldsV1 returns the managed fields that a JSON text names. The type has no constructor in the oldest supported release, and no
// public field in the newest.
func FieldsV1(text string) (*metav1.FieldsV1, error) {
	fields := &metav1.FieldsV1{}
	return fields, json.Unmarshal([]byte(text), fields)
}
