// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubeletpayload compares a kubelet config with the type that this program was built with. It is for nodes
// without a kubelet that can judge it, and for warnings: a newer kubelet knows more fields.
package kubeletpayload

import (
	v1beta1 "k8s.io/kubelet/config/v1beta1"

	"github.com/belayproject/belay/configsync"
)

// Strict returns an error for a document, in JSON, that has a field which the type lacks, or a value of another type.
// The error names fields, never a value.
func Strict(doc []byte) error {
	var c v1beta1.KubeletConfiguration
	return configsync.DecodeStrict(doc, &c)
}
