//! Golden numbers that more than one test compares with: those of the suite's own C++ programs, of constants in it, or of an independent
//! numpy program. Nothing here was written by the program under test.

#![allow(clippy::excessive_precision, reason = "golden numbers stand as their programs printed them")]

/// A constant of the suite.
pub(crate) mod hello {
    /// Squares and doubles in turns, from 1.
    pub(crate) const SEEN: [f64; 8] = [1.0, 2.0, 4.0, 8.0, 64.0, 128.0, 16384.0, 32768.0];
}

/// ADBench's test data, in the suite's C++ program.
pub(crate) mod gmm {
    /// With gamma 1 and m 0.
    pub(crate) const ALPHA: [f64; 3] = [0.1086628555086525, -0.7412700395238985, 0.6326071840152462];
    /// With gamma 1 and m 0.
    pub(crate) const MU: [f64; 6] = [
        1.11692576532787,
        0.1633330135514553,
        -0.02199898240711931,
        0.2277782922542361,
        1.209630256128322,
        -0.06063759207339564,
    ];
    /// With gamma 1 and m 0.
    pub(crate) const Q: [f64; 6] = [
        -3.877309539853597,
        -0.2513580570468236,
        -0.02420059544032302,
        -6.11097740927195,
        -1.073118770446086,
        0.8208366546891366,
    ];
    /// With gamma 1 and m 0.
    pub(crate) const L: [f64; 3] = [-1.214897690150388, 0.1640855903225535, 1.545501069533677];
    /// With gamma 0.7 and m 3.
    pub(crate) const PRIOR_L: [f64; 3] = [-0.8067339801503881, 0.0402626903225535, 0.8977648595336771];
    /// With gamma 1 and m 0.
    pub(crate) const OBJECTIVE: f64 = -20.067360546658307;
    /// With gamma 0.7 and m 3.
    pub(crate) const PRIOR_OBJECTIVE: f64 = -47.231033137548984;
}

/// ADBench's test data and the suite's.
pub(crate) mod ba {
    pub(crate) const WEIGHT_ERROR: f64 = 0.826092651516;
}

/// 20 characters of ADBench's smallest file, in the suite's C++ program.
pub(crate) mod lstm {
    pub(crate) const OBJECTIVE: f64 = 0.44745457367013863;
    pub(crate) const NORM: f64 = 0.05655429278641766;
    pub(crate) const LAST: f64 = -0.01230628453744167;
}

/// 100 points of 3 coordinates, 5 centroids (numpy, closed form).
pub(crate) mod kmeans {
    /// Rows of the direction, one after the other.
    pub(crate) const DIRECTION: [f64; 15] = [
        -0.01787512087529259,
        -0.0903956476665501,
        -0.03285914602955537,
        0.02798177851364016,
        -0.0913997877544413,
        0.12721530594863,
        0.2187823022112127,
        -0.004245980067507309,
        0.1425389861003222,
        0.1661959751264045,
        -0.02232749892496749,
        -0.1225378490910914,
        0.3709367465786636,
        -0.104844806175679,
        0.1616042359359562,
    ];
    pub(crate) const COST: f64 = 21.610920569848552;
}

/// 8 parameters (numpy, closed form).
pub(crate) mod llsq {
    /// Of 16 points.
    pub(crate) const GRADIENT_16: [f64; 8] = [
        13.64936129046393,
        2.847317646345211,
        7.975303113101055,
        3.791935212877757,
        6.344223882091928,
        3.717113169087756,
        5.534722430654366,
        3.571791710358244,
    ];
    /// Of 17 points.
    pub(crate) const GRADIENT_17: [f64; 8] = [
        14.40813250545451,
        2.939761626140307,
        8.344577312694948,
        3.906331878853037,
        6.593834740384823,
        3.818730972486462,
        5.719877653170019,
        3.656350105912713,
    ];
    pub(crate) const VALUE_16: f64 = 13.127415825160634;
    pub(crate) const VALUE_17: f64 = 13.252207405871244;
}

/// 2500 numbers in [0, 1); the wide ones in [-100, 100) (numpy, closed form).
pub(crate) mod lse {
    pub(crate) const VALUE: f64 = 8.3774727971573668;
    pub(crate) const NORM: f64 = 0.02081725629402276;
    pub(crate) const FIRST: f64 = 0.0002983172389418424;
    pub(crate) const LAST: f64 = 0.0005830728605468441;
    pub(crate) const WIDE_VALUE: f64 = 102.87469107912902;
    pub(crate) const WIDE_NORM: f64 = 0.1694552319928385;
    pub(crate) const WIDE_FIRST: f64 = 3.064452706737275e-66;
    pub(crate) const WIDE_LAST: f64 = 4.957334780072661e-08;
}

/// Last component of the state by the initial one (numpy, complex steps).
pub(crate) mod ode {
    /// 4 components, 5 steps.
    pub(crate) const GRADIENT_4: [f64; 4] =
        [0.007796755003852385, 0.02612152639079824, 0.05614257243047181, 0.01024900780755851];
    /// 8 components, 10 steps.
    pub(crate) const GRADIENT_8: [f64; 8] = [
        3.961288771603545e-06,
        1.327153529101372e-05,
        2.852429525717816e-05,
        5.207202166554987e-06,
        2.986040559262777e-06,
        8.835849067435608e-06,
        5.420787128099336e-06,
        8.562434960133383e-06,
    ];
}

/// A 5 x 5 matrix (numpy).
pub(crate) mod det {
    /// The cofactors, row after row.
    pub(crate) const GRADIENT_5: [f64; 25] = [
        0.1222402930414658,
        -0.07893077526551709,
        -0.02760639180243147,
        0.06454153810664816,
        -0.06197070995645942,
        0.04990458211924027,
        0.1652580071498485,
        0.1227995657924169,
        -0.2510646496239374,
        -0.1165120886708736,
        0.0663937497499477,
        0.1584330872217134,
        0.008580854958535944,
        -0.1164617861861156,
        -0.07298669899164993,
        -0.1282842159533091,
        -0.1159844113833383,
        -0.04562083088020702,
        0.1326801013502595,
        0.208985961926025,
        -0.07362738308669986,
        0.008150512475995759,
        0.03252765488673629,
        0.08205708085406987,
        -0.01993230131303709,
    ];
    pub(crate) const VALUE_5: f64 = 0.07003124183758758;
}

/// A constant of the suite.
pub(crate) mod particle {
    pub(crate) const CONTROL: f64 = 0.2071918746486116;
}

/// A constant of the suite.
pub(crate) mod saddle {
    /// All four components.
    pub(crate) const POINT: f64 = 8.246324826140356e-06;
}
