/* network_presets.c: networks that come with the program.
 *
 * Each is a file of the format in networks/, which the build makes a text; every figure has its source there,
 * and what is an assumption is called one. */
#include "predict/network_presets.h"

#include <stddef.h>

#include "networks.h"

const lsi_network_preset lsi_network_presets[] = {
    {"ethernet-10g", "10 Gbit/s Ethernet and TCP, one switch that does not block, CPUs",
     networks_ethernet_10g_json},
    {"ethernet-25g", "25 Gbit/s Ethernet and TCP, one switch that does not block, CPUs",
     networks_ethernet_25g_json},
    {"ethernet-100g", "100 Gbit/s Ethernet and TCP, one switch that does not block, CPUs",
     networks_ethernet_100g_json},
    {"infiniband-edr", "EDR InfiniBand (100 Gbit/s), fat tree of three levels, which does not block, CPUs",
     networks_infiniband_edr_json},
    {"infiniband-edr-2to1",
     "EDR InfiniBand (100 Gbit/s), fat tree of three levels, leaf switches with half of the rate upwards, "
     "CPUs",
     networks_infiniband_edr_2to1_json},
    {"infiniband-hdr", "HDR InfiniBand (200 Gbit/s), fat tree of three levels, which does not block, CPUs",
     networks_infiniband_hdr_json},
    {"infiniband-hdr-2to1",
     "HDR InfiniBand (200 Gbit/s), fat tree of three levels, leaf switches with half of the rate upwards, "
     "CPUs",
     networks_infiniband_hdr_2to1_json},
    {"infiniband-ndr", "NDR InfiniBand (400 Gbit/s), fat tree of three levels, which does not block, CPUs",
     networks_infiniband_ndr_json},
    {"infiniband-ndr-2to1",
     "NDR InfiniBand (400 Gbit/s), fat tree of three levels, leaf switches with half of the rate upwards, "
     "CPUs",
     networks_infiniband_ndr_2to1_json},
    {"hgx-a100",
     "eight A100 a machine with NVLink and NVSwitch, eight adapters of 200 Gbit/s, fat tree that does not "
     "block",
     networks_hgx_a100_json},
    {"hgx-h100",
     "eight H100 a machine with NVLink and NVSwitch, eight adapters of 400 Gbit/s, fat tree that does not "
     "block",
     networks_hgx_h100_json},
    {"slingshot", "HPE Slingshot 11 dragonfly of 64 groups, one adapter of 200 Gbit/s a machine, CPUs",
     networks_slingshot_json},
    {"aries", "Cray Aries dragonfly of 16 groups (XC30, XC40, XC50), all cables in place",
     networks_aries_json},
    {"longhorn", "Longhorn of TACC: four V100 a machine with NVLink, EDR InfiniBand", networks_longhorn_json},
    {"theta", "Theta of ALCF: Cray XC40 (KNL), Aries dragonfly of 12 groups", networks_theta_json},
    {"edison", "Edison of NERSC: Cray XC30, Aries dragonfly of 15 groups", networks_edison_json},
    {NULL, NULL, NULL},
};
