// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/belayproject/belay/drain/v1alpha1"
)

// An object as medik8s' operator has it means the same here: the mode is Drain unless it says otherwise.
func Example() {
	m := v1alpha1.NodeMaintenance{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.NodeMaintenanceKind},
		ObjectMeta: metav1.ObjectMeta{Name: "worker-7-disk"},
		Spec:       v1alpha1.NodeMaintenanceSpec{NodeName: "worker-7", Reason: "replace the disk in slot 2"},
	}
	text, err := yaml.Marshal(m.Spec)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(m.APIVersion, " ", m.Kind, "\n", string(text))
	// Output:
	// belay.dev/v1alpha1 NodeMaintenance
	// nodeName: worker-7
	// reason: replace the disk in slot 2
}
