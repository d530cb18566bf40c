// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/belayproject/belay/configsync/v1alpha1"
)

// A NodeConfig assigns the config "kubelet" of one ConfigMap to one node. With a digest it can be written before the ConfigMap exists.
func ExampleNodeConfig() {
	nc := v1alpha1.NodeConfig{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.NodeConfigKind},
		ObjectMeta: metav1.ObjectMeta{Name: "node-1"},
		Spec: v1alpha1.NodeConfigSpec{Source: &v1alpha1.NodeConfigSource{ConfigMapRef: &v1alpha1.ConfigMapRef{
			Namespace: "node-configs", Name: "pool-a-7f3c", Key: "kubelet",
			Digest: "sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae",
		}}},
	}
	out, err := json.MarshalIndent(nc.Spec, "", "  ")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(out))
	// Output:
	// {
	//   "source": {
	//     "configMapRef": {
	//       "namespace": "node-configs",
	//       "name": "pool-a-7f3c",
	//       "key": "kubelet",
	//       "digest": "sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"
	//     }
	//   }
	// }
}
